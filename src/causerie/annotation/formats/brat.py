"""brat's standoff format, two files per item: the text, and the marks in it. Export only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from causerie.annotation.formats.common import final_of
from causerie.annotation.tasks import Item, Task
from causerie.annotation.work import Worked
from causerie.io.places import Place, whole_turn


def write(worked: Iterable[Worked], task: Task) -> Iterator[tuple[str, str]]:
    """Yield names and contents of files, with the final marks of each item.

    Files are numbered, because item names can be any text; the first line of each is the name.
    """
    for number, one in enumerate(worked, 1):
        lines = [_line(one.item.name), *(_line(f"{t.speaker}: {t.text}") for t in one.item.turns)]
        yield f"{number:05}.txt", "\n".join(lines) + "\n"
        yield f"{number:05}.ann", "".join(f"{line}\n" for line in _marks(one, task))


def _marks(one: Worked, task: Task) -> Iterator[str]:
    item, state = one.item, final_of(one)
    if task.kind == "causes":
        place = whole_turn(item.turns, len(item.turns) - 1)
        yield f"T1\tResponse {_stretch(item, place)}"
    for number, mark in enumerate(state.marks, 2):
        label = "".join(c if c.isalnum() and c.isascii() else "_" for c in mark.label)
        yield f"T{number}\t{label.capitalize()} {_stretch(item, mark.place)}"
        if task.kind == "causes":
            yield f"R{number - 1}\tCauses Arg1:T{number} Arg2:T1"
    if state.comment:
        target = "T1" if task.kind == "causes" else "T2"
        yield f"#1\tAnnotatorNotes {target}\t{_line(state.comment)}"


def _stretch(item: Item, place: Place) -> str:
    before = [len(item.name) + 1, *(len(f"{t.speaker}: {t.text}\n") for t in item.turns)]
    begin = sum(before[: place.turn + 1]) + len(f"{item.turns[place.turn].speaker}: ")
    return f"{begin + place.start} {begin + place.stop}\t{_line(place.text(item.turns))}"


def _line(said: str) -> str:
    """Replace every line break and tab by a space, which keeps all offsets."""
    return "".join(" " if character in "\r\n\t\v\f\x85\u2028\u2029" else character
                   for character in said)  # fmt: skip
