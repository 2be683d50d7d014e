"""Creating a project: items from files, correct answers for the dry run, and people."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from causerie.annotation.assignment import first_round
from causerie.annotation.formats import read_worked
from causerie.annotation.project import NewItem, Settings
from causerie.annotation.store import Store
from causerie.annotation.tasks import Item, Kind, Task, items_of, pairs_of
from causerie.annotation.work import Worked, events_of
from causerie.dialogue import Dialogue, Exchange
from causerie.errors import CauserieError
from causerie.io import Rejected, read
from causerie.progress import Progress, Watch, ignore

LEAD = "lead"


@dataclass(frozen=True)
class Founded:
    """A new project and the secret tokens of its people, which cannot be recovered later."""

    project: int
    items: int
    practice: int
    assigned: int
    tokens: dict[str, str]


def found(
    store: Store,
    name: str,
    settings: Settings,
    items: Iterable[Item],
    people: Sequence[str],
    gold: Iterable[NewItem] = (),
) -> Founded:
    """Create a project with everybody's links, and assign the first round."""
    names = [person.strip() for person in people]
    if not all(names) or len(set(names)) < len(names) or LEAD in names:
        raise CauserieError(f"names of annotators must be different, not empty, and not {LEAD!r}")
    project = store.create(name, settings)
    practice = store.add_items(project, gold)
    added = store.add_items(project, (NewItem(item) for item in items))
    tokens = {LEAD: store.add_person(project, LEAD, "lead") or ""}
    for person in names:
        tokens[person] = store.add_person(project, person, "annotator") or ""
    return Founded(project, added, practice, store.assign(project, first_round), tokens)


def read_items(
    paths: Sequence[Path],
    kind: Kind,
    *,
    speaker: str | None = None,
    sample: int | None = None,
    seed: int = 0,
    watch: Watch = ignore,
) -> list[Item]:
    """Return the items of the conversations in some files; repeated names get numbers.

    A sample consists of whole conversations, because their responses share a context.
    """
    records: list[Dialogue | Exchange] = []
    for path in paths:
        for record in read(path):
            if isinstance(record, Rejected):
                watch(Progress("reading", note=f"skipped {record}"))
            else:
                records.append(record)
    if sample is not None and sample < len(records):
        chosen = sorted(random.Random(seed).sample(range(len(records)), sample))
        records = [records[place] for place in chosen]
    if kind == "pairs":
        exchanges = [
            record if isinstance(record, Exchange) else Exchange(record, len(record.turns) - 1)
            for record in records
        ]
        found_items = list(pairs_of(exchanges))
    else:
        found_items = [item for record in records for item in items_of(kind, record, speaker)]
    if not found_items:
        raise CauserieError(f"{paths[0]} has nothing to annotate: check --task and --speaker")
    return list(_apart(found_items))


def _apart(items: Iterable[Item]) -> Iterable[Item]:
    names: dict[str, int] = {}
    for item in items:
        names[item.name] = number = names.get(item.name, 0) + 1
        yield item if number == 1 else replace(item, name=f"{item.name} ({number})")


def read_gold(path: Path, task: Task) -> list[NewItem]:
    """Return items with correct answers for the dry run, from annotations of any known format."""
    new = []
    for one in read_worked(path, task):
        if isinstance(one, Rejected):
            raise CauserieError(f"{one}: correct it, because everybody's work is compared with it")
        assert isinstance(one, Worked)
        done = [work for work in one.works if work.state.finished]
        if not done:
            raise CauserieError(
                f"{path}: nobody has finished {one.item.name}, so it has no correct answers"
            )
        item = replace(one.item, name=f"practice: {one.item.name}")
        new.append(NewItem(item, tuple(events_of(done[-1], item, task))))
    return new
