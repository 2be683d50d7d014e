"""A project as tables on a terminal: everybody's progress, and who agrees with whom."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median

from causerie.annotation.agreement import Agreement, qualities
from causerie.annotation.project import ROUNDS, Snapshot
from causerie.render.tables import Table
from causerie.stats import Estimate


def status_table(project: Snapshot) -> Table:
    """Return a table with a row for every annotator."""
    quality = qualities(project)
    rounds = [r for r in ROUNDS if any(one.round == r for one in project.assignments.values())]
    rows = []
    for person in project.people.values():
        own = [one for one in project.assignments.values() if one.person == person.id]
        if person.role == "lead" and not own:
            continue
        done = [one for one in own if project.states[one.id].finished]
        seconds = [project.seconds(one.id) for one in done]
        rows.append(
            [
                person.name if person.active else f"{person.name} (no link)",
                *(
                    f"{sum(o.round == r for o in done)} of {sum(o.round == r for o in own)}"
                    for r in rounds
                ),
                f"{median(seconds):.0f} s" if seconds else "–",
                quality[person.id].gold.text(2),
                quality[person.id].others.text(2),
            ]
        )
    headings = ["annotator", *rounds, "time per item", "correct in practice", "agrees with others"]
    return Table(headings, rows, project.name)


def status_line(project: Snapshot) -> str:
    work = [listed.id for listed in project.items.values() if listed.gold is None]
    done = [item for item in work if project.final(item)]
    settled = sum(project.is_settled(item) for item in done)
    return f"{len(done):,} of {len(work):,} items done, {settled:,} settled"


def agreement_tables(found: Agreement) -> list[Table]:
    """Return tables of agreement: of all annotators by label or question, and of every two."""
    tables = []
    if found.by_name:
        names = list(next(iter(found.by_name.values())))
        rows = [[n, *_values(measures)] for n, measures in found.by_name.items()]
        title = f"On {found.items:,} items that several annotators have finished"
        tables.append(Table(["", *names], rows, title))
    if found.between:
        names = list(found.between[0].measures)
        rows = [
            [f"{one.first}, {one.second}", str(one.items), *_values(one.measures)]
            for one in found.between
        ]
        tables.append(Table(["annotators", "items", *names], rows, "Every two"))
    return tables


def _values(measures: Mapping[str, Estimate]) -> list[str]:
    return [one.text(2) for one in measures.values()]
