"""Conversion of published files to judged records (docs/judged-sets.md).

A converter takes the published files and yields records; `convert` writes them. The files belong
to their authors: they are read where the user has put them, never fetched or shipped.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from causerie.bench.sets.fields import read_rating
from causerie.errors import CauserieError
from causerie.io import atomic_write

Record: TypeAlias = dict[str, Any]
Converter: TypeAlias = Callable[[Sequence[Path]], Iterator[Record]]

_VOTES = {
    "a is better": "A",
    "b is better": "B",
    "both are good": "both good",
    "both are bad": "both bad",
}


def convert(name: str, paths: Sequence[str | Path], out: str | Path) -> int:
    """Write the set `name` from its published files to `out` (.jsonl or .jsonl.gz).

    Return the number of records. The file appears complete or not at all.
    """
    if name not in CONVERTERS:
        known = ", ".join(CONVERTERS)
        raise CauserieError(f"there is no converter for {name!r}: use one of {known}")
    if not paths:
        raise CauserieError(f"name the published files of {name!r}")
    files, out = [Path(path) for path in paths], Path(out)
    count = 0
    with atomic_write(out) as file:
        outer = gzip.GzipFile("", "wb", fileobj=file, mtime=0) if out.suffix == ".gz" else file
        for record in _checked(name, files):
            outer.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
            count += 1
        if outer is not file:
            outer.close()
        if not count:
            raise CauserieError(f"no record of {name!r} found in {_names(files)}: check the files")
    return count


def _checked(name: str, paths: Sequence[Path]) -> Iterator[Record]:
    """Yield the converter's records; raise a clear error for a file of another format."""
    try:
        yield from CONVERTERS[name](paths)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise CauserieError(
            f"{_names(paths)}: not in the published format of {name!r} "
            f"({type(error).__name__}: {error}); see `causerie bench sets` for the file it needs"
        ) from error


def fed_turn(paths: Sequence[Path]) -> Iterator[Record]:
    """Convert fed_data.json: the entries with a response, three turns before their dialogue."""
    entries = _json(paths[0], list)
    waiting: list[Record] = []
    turns = dialogues = 0
    for index, entry in enumerate(entries):
        if "response" not in entry:
            # A dialogue's transcript starts with the context of each of its turns.
            whole = _transcript(entry["context"])
            for record in waiting:
                if whole[: len(record["context"])] == record["context"]:
                    record["dialog_id"] = f"fed-dialog-{dialogues:03d}"
                yield record
            waiting, dialogues = [], dialogues + 1
            continue
        waiting.append(
            {
                "id": f"fed-turn-{turns:03d}",
                "level": "turn",
                "context": _transcript(entry["context"]),
                "response": _transcript(entry["response"])[0],
                "reference": None,
                "system": entry["system"],
                "ratings": _rows(entry["annotations"]),
                "source_index": index,
            }
        )
        turns += 1
    yield from waiting


def fed_dialog(paths: Sequence[Path]) -> Iterator[Record]:
    """Convert fed_data.json: the entries without a response."""
    whole = [(i, e) for i, e in enumerate(_json(paths[0], list)) if "response" not in e]
    for number, (index, entry) in enumerate(whole):
        yield {
            "id": f"fed-dialog-{number:03d}",
            "level": "dialog",
            "context": _transcript(entry["context"]),
            "reference": None,
            "system": entry["system"],
            "ratings": _rows(entry["annotations"]),
            "source_index": index,
        }


def grade(corpus: str) -> Converter:
    """Convert human_judgement.json, with references from folders with human_ctx/hyp/ref.txt."""

    def converter(paths: Sequence[Path]) -> Iterator[Record]:
        references = {}
        for folder in paths[1:]:
            for ref in sorted(folder.rglob("human_ref.txt")):
                files = [ref.with_name(f"human_{kind}.txt") for kind in ("ctx", "hyp", "ref")]
                for context, response, reference in zip(*map(_lines, files), strict=True):
                    references[_squeezed(context), _squeezed(response)] = reference
        count: dict[str, int] = {}
        for entry in _json(paths[0], list):
            if entry["Dataset"].removesuffix("_EVAL") != corpus:
                continue
            system, response = entry["DialogModel"], entry["Response"]
            number = count[system] = count.get(system, -1) + 1
            context = _alternating(entry["Context"].split("|||"))
            key = _squeezed(entry["Context"]), _squeezed(response)
            yield {
                "id": f"grade_{corpus}-{system}-{number:03d}",
                "level": "turn",
                "context": context,
                "response": _reply(context, response),
                "reference": references.get(key),
                "system": system,
                "ratings": {
                    "coherence": [read_rating(s) for s in json.loads(entry["HumanScores"])]
                },
                "source_id": entry["ID"],
            }

    return converter


def usr(name: str) -> Converter:
    """Convert pc_usr_data.json or tc_usr_data.json: contexts, each with several responses."""
    facts = {"response", "model"}

    def converter(paths: Sequence[Path]) -> Iterator[Record]:
        for number, entry in enumerate(_json(paths[0], list)):
            context = _alternating(entry["context"].split("\n"))
            original = [
                answer["response"].strip()
                for answer in entry["responses"]
                if answer["model"] == "Original Ground Truth"
            ]
            for index, answer in enumerate(entry["responses"]):
                yield {
                    "id": f"{name}-{number:02d}-{index}",
                    "level": "turn",
                    "context": context,
                    "response": _reply(context, answer["response"]),
                    "reference": original[0] if original else None,
                    "system": answer["model"],
                    "ratings": _rows({k: v for k, v in answer.items() if k not in facts}),
                    "fact": entry["fact"].strip(),
                }

    return converter


def dailydialog_zhao(paths: Sequence[Path]) -> Iterator[Record]:
    """Convert dd_annotations.json from Zenodo, or dailydialog-zhao_eval.json of DSTC10."""
    data = _json(paths[0], (list, dict))
    if isinstance(data, list):
        yield from dstc10(paths)
        return
    number = 0
    for entry in data.values():
        context = [{"speaker": s, "text": t.strip()} for s, t in entry["context"] if t.strip()]
        speaker, reference = entry["reference"]
        for system, answer in entry["responses"].items():
            workers = list(answer["scores"].values())
            yield {
                "id": f"dailydialog-zhao-{number:03d}",
                "level": "turn",
                "context": context,
                "response": {"speaker": speaker, "text": answer["uttr"].strip()},
                "reference": reference.strip(),
                "system": system,
                "ratings": {
                    d: [read_rating(worker[d]) for worker in workers]
                    for d in ("content", "grammar", "overall", "relevance")
                },
            }
            number += 1


def dstc10(paths: Sequence[Path]) -> Iterator[Record]:
    """Convert a *_eval.json of DSTC10 track 5: one entry per response, one line per turn."""
    for entry in _json(paths[0], list):
        context = _alternating(entry["context"].split("\n"))
        references = [text.strip() for text in entry["reference"]]
        yield {
            "id": entry["dialogue_id"].strip(),
            "level": "turn",
            "context": context,
            "response": _reply(context, entry["response"]),
            "reference": references[0] if references else None,
            "references": references,
            "system": entry["model"],
            "ratings": _rows(entry["annotations"]),
        }


def dstc9_interactive(paths: Sequence[Path]) -> Iterator[Record]:
    """Convert chatbot1.json ... chatbot11.json: one entry per annotator, each with a transcript."""
    other = {"context", "human (overall)"}
    for path in sorted(paths, key=lambda p: (len(p.stem), p.stem)):
        dialogues: dict[str, list[Mapping[str, Any]]] = {}
        for entry in _json(path, list):
            dialogues.setdefault(entry["context"], []).append(entry)
        system = path.stem
        place = system.removeprefix("chatbot").zfill(2)
        for number, (transcript, entries) in enumerate(dialogues.items()):
            overall = [read_rating(entry["human (overall)"]) for entry in entries]
            rows = {
                d: [read_rating(e.get(d)) for e in entries] for d in entries[0] if d not in other
            }
            yield {
                "id": f"dstc9-{place}-{number:03d}",
                "level": "dialog",
                "context": _transcript(transcript),
                "reference": None,
                "system": system,
                "ratings": {**rows, "overall": overall},
            }


def pairwise(domain: str) -> Converter:
    """Convert CausalScore's *-pairwise.json: contexts, each with six compared pairs."""

    def converter(paths: Sequence[Path]) -> Iterator[Record]:
        for entry in _json(paths[0], list):
            context = [_said(turn) for turn in entry["history"]]
            for key in [key for key in entry if "-vs-" in key]:
                first, second = key.split("-vs-")
                pair = entry[key]
                votes = [pair[k] for k in pair if k.startswith("human_evaluation_")]
                yield {
                    "id": f"{domain}-{entry['id']}-{key}",
                    "level": "pair",
                    "context": context,
                    "a": {"system": first.removesuffix("_response"), **_said(pair[first])},
                    "b": {"system": second.removesuffix("_response"), **_said(pair[second])},
                    "reference": _said(entry["human_response"])["text"],
                    "judgements": [
                        {d: _VOTES[v.strip(" .").casefold()] for d, v in vote.items()}
                        for vote in votes
                    ],
                }

    return converter


CONVERTERS: Mapping[str, Converter] = {
    "fed_turn": fed_turn,
    "fed_dialog": fed_dialog,
    "grade_convai2": grade("convai2"),
    "grade_dailydialog": grade("dailydialog"),
    "grade_empatheticdialogues": grade("empatheticdialogues"),
    "usr_personachat": usr("usr_personachat"),
    "usr_topicalchat": usr("usr_topicalchat"),
    "dailydialog_zhao": dailydialog_zhao,
    "dailydialog_gupta": dstc10,
    "dstc9_interactive": dstc9_interactive,
    "pairwise_dream": pairwise("dream"),
    "pairwise_esconv": pairwise("esconv"),
    "pairwise_msc": pairwise("msc"),
}


def _json(path: Path, expected: type | tuple[type, ...]) -> Any:
    try:
        data = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise CauserieError(f"{path} cannot be read ({error.strerror}): check its name") from error
    except (ValueError, RecursionError) as error:
        raise CauserieError(f"{path} is not JSON: use the file as published") from error
    if not isinstance(data, expected):
        raise TypeError(f"the file holds a {type(data).__name__}")
    return data


def _lines(path: Path) -> list[str]:
    try:
        return [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    except OSError as error:
        raise CauserieError(f"{path} cannot be read ({error.strerror}): check its name") from error


def _transcript(text: str) -> list[dict[str, str]]:
    """Return turns from "User: ..." and "System: ..." lines; other lines continue the turn."""
    turns: list[dict[str, str]] = []
    for line in text.split("\n"):
        match = re.match(r"(User|System):", line)
        if match:
            turns.append({"speaker": match[1].lower(), "text": line[match.end() :].strip()})
        elif line.strip():
            if not turns:
                raise ValueError("a transcript starts without a speaker")
            turns[-1]["text"] = f"{turns[-1]['text']} {line.strip()}".strip()
    return [turn for turn in turns if turn["text"]]


def _alternating(texts: Sequence[str]) -> list[dict[str, str]]:
    """Return turns spoken alternately by A and B, where the source names no speakers."""
    said = [text.strip() for text in texts if text.strip()]
    return [{"speaker": "AB"[i % 2], "text": text} for i, text in enumerate(said)]


def _reply(context: Sequence[Mapping[str, str]], text: str) -> dict[str, str]:
    return {"speaker": "AB"[len(context) % 2], "text": text.strip()}


def _said(turn: Mapping[str, str]) -> dict[str, str]:
    return {"speaker": turn["speaker"].strip(), "text": turn["utterance"].strip()}


def _rows(annotations: Mapping[str, Any]) -> dict[str, list[float | None]]:
    return {
        dimension: [read_rating(rating) for rating in (row if isinstance(row, list) else [row])]
        for dimension, row in annotations.items()
    }


def _squeezed(text: str) -> str:
    return " ".join(text.replace("|||", " ||| ").split())


def _names(paths: Sequence[Path]) -> str:
    return ", ".join(str(path) for path in paths)
