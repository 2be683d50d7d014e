"""What must be known about a hub model before transformers loads it by its name."""

from __future__ import annotations

import re
from pathlib import Path

from causerie.models.libraries import libraries
from causerie.models.sources import SILENT_HUB, SourceError, first_line
from causerie.progress import announced

_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?", re.ASCII)


def is_hub_name(name: str) -> bool:
    """Whether it looks like `owner/name` or, as some old models are called, `name`."""
    return _NAME.fullmatch(name) is not None


def hub_file(name: str, file: str, offline: bool, revision: str | None = None) -> Path | None:
    """One file of a hub model, in the local hub cache: `.../snapshots/COMMIT/file`.

    None if the hub (offline: the cache) has no such file; `SourceError` if the hub has no such
    model or does not answer.
    """
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    with libraries(offline), announced(f"asking the model hub for {name}"):
        try:
            return Path(hf_hub_download(name, file, revision=revision, local_files_only=offline))
        except LocalEntryNotFoundError as error:
            if offline:
                return None
            raise SourceError(SILENT_HUB) from error
        except EntryNotFoundError:
            return None
        except GatedRepoError as error:
            raise SourceError("its owners must grant you access, and you must log in") from error
        except RepositoryNotFoundError as error:
            raise SourceError("the model hub has no such model, or none you may see") from error
        except Exception as error:  # of the hub client and of the HTTP library beneath it
            raise SourceError(first_line(error)) from error
