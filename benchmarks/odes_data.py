"""What users said to other systems: utterances for `causerie train odes`, and some kept out.

    python benchmarks/odes_data.py DATA OUT

DATA is a folder with `dream_intents.jsonl.gz` (phrases of DREAM's intent catcher, Apache-2.0) and
`convabuse.jsonl.gz` (users of two chatbots, annotated for abuse, CC BY 4.0). Writes
OUT/dream.jsonl and OUT/convabuse.jsonl, all but a third, which no training sees. Utterances that
are near copies of each other are in the same part. With --rated RATED, a folder with the rated
logs, it writes OUT/ji2022.jsonl too: the turns of `odes_labels.csv` that may be learned from.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import odes_turns
from causerie.metrics.odes import OTHER, Utterance
from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.train import Example, apart, examples
from causerie.text import words

Part = Literal["kept out", "validation", "learned"]
Parts = Mapping[Part, Sequence[Example]]
SHARES: Mapping[Part, float] = {"kept out": 1 / 3, "validation": 1 / 6}
"""How much of everything at most; the rest is learned."""
LEARNED: tuple[Part, ...] = ("learned", "validation")
"""What the shipped artifact is trained on, once everything is chosen."""
ALIKE = 2 / 3
"""Near copies share so many of all their words."""
INTENTS = {
    "exit": "stop_request",
    "topic_switching": "topic_switch_request",
    "lets_chat_about": "topic_switch_request",
    "dont_understand": "not_understand",
    "what_are_you_talking_about": "not_understand",
    "repeat": "repeat_request",
    "stupid": "insult",
    **dict.fromkeys(
        (
            "opinion_request", "cant_do", "weather_forecast_intent", "yes", "tell_me_a_story",
            "where_are_you_from", "doing_well", "who_made_you", "what_is_your_name",
            "what_can_you_do", "what_is_your_job", "what_time",
        ),
        OTHER,
    ),
}  # fmt: skip
"""Which class an intent of DREAM is; intents that are several, or any, are left out."""
MAYBE = {
    "lets_chat_about": {"stop_request"},  # "stop, let's talk about ..."
    "stupid": {"stop_request"},
    "dont_understand": {"repeat_request"},  # "i did not get what you said"
    "what_are_you_talking_about": {"repeat_request"},
}
"""Classes of other intents that one may have too."""
BORING = "boring"
"""A critique, which DREAM counts among the insults: left out."""
TIMES = 3
"""How often a labelled turn is learned in an epoch: they are few, and what users really say."""
ABUSE = {"insult", "obscenity"}
SEXUAL = "sex_harassment"


def parts_of(texts: Sequence[str]) -> list[Part]:
    """The part of each text: groups of near copies by their hash, as many as the shares allow."""
    keys = [" ".join(words(text)) for text in texts]
    group = near_copies(set(keys))
    sizes = Counter(group[key] for key in keys)
    room = {part: share * len(texts) for part, share in SHARES.items()}
    chosen: dict[str, Part] = {}
    for name in sorted(sizes, key=lambda name: hashlib.sha256(name.encode()).hexdigest()):
        fits = (part for part, left in room.items() if sizes[name] <= left)
        chosen[name] = part = next(fits, "learned")
        if part in room:
            room[part] -= sizes[name]
    return [chosen[group[key]] for key in keys]


def near_copies(keys: set[str]) -> dict[str, str]:
    """For each text the first of its group: near copies, and near copies of those."""
    first = {key: key for key in keys}
    holding: dict[str, list[str]] = defaultdict(list)
    bags = {key: set(key.split()) for key in keys}

    def root(key: str) -> str:
        while first[key] != key:
            key = first[key]
        return key

    for key in sorted(keys):
        shared = Counter(other for word in bags[key] for other in holding[word])
        for other, count in shared.items():
            if count >= ALIKE * len(bags[key] | bags[other]):
                a, b = sorted((root(key), root(other)))
                first[b] = a
        for word in bags[key]:
            holding[word].append(key)
    return {key: root(key) for key in keys}


def rows_of(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def dream(folder: Path) -> Parts:
    """Phrases of DREAM: of a signal the other intents are judged too, of `other` everything."""
    texts: dict[str, set[str]] = defaultdict(set)
    for row in rows_of(folder / "dream_intents.jsonl.gz"):
        if row["label"] in INTENTS and BORING not in words(row["text"]):
            texts[row["label"]].add(row["text"])
    parts = _empty()
    for intent, some in texts.items():
        label, these = INTENTS[intent], sorted(some)
        judged = frozenset(INTENTS.values()) - MAYBE.get(intent, set())
        for text, part in zip(these, parts_of(these), strict=True):
            one = Example(Utterance(text, None), frozenset({label}))
            parts[part].append(one if label == OTHER else replace(one, judged=judged))
    return parts


def convabuse(folder: Path) -> Parts:
    """Users of chatbots; sexual harassment is obscenity, other abuse an insult, by majorities.

    What abuses in one way may do so in the other; what does not may give any other signal.
    """
    rows = [row for row in rows_of(folder / "convabuse.jsonl.gz") if row["label"] != "ambiguous"]
    parts = _empty()
    for row, part in zip(rows, parts_of([row["text"] for row in rows]), strict=True):
        utterance = Utterance(row["text"], (row["context"] or [None])[-1])
        if row["label"] == "abusive":
            labels = frozenset({"obscenity" if _sexual(row["annotations"]) else "insult"})
            parts[part].append(Example(utterance, labels, labels | {OTHER}))
        else:
            parts[part].append(Example(utterance, frozenset(), frozenset(ABUSE)))
    return parts


def _sexual(annotations: Sequence[Mapping[str, Any]]) -> bool:
    """Whether most of those who saw abuse saw this."""
    abusive = [one for one in annotations if one["severity"] < 0]
    return 2 * sum(SEXUAL in one["types"] for one in abusive) > len(abusive)


def _empty() -> dict[Part, list[Example]]:
    return {part: [] for part in get_args(Part)}


def sources(folder: Path) -> dict[str, Parts]:
    """Both, so that nothing kept out is, word for word, learned from anywhere.

    Nor is anything learned that the tested templates make.
    """
    found = {"dream": dream(folder), "convabuse": convabuse(folder)}
    learned, tested = examples(OdesConfig())
    used = [one for parts in found.values() for part in LEARNED for one in parts[part]]
    return {
        name: {
            part: apart(some, tested if part in LEARNED else [*learned, *used])
            for part, some in parts.items()
        }
        for name, parts in found.items()
    }


def write(path: Path, some: Sequence[Example]) -> None:
    """As `causerie train odes --data` reads them."""
    records = [
        {
            "text": one.utterance.text,
            "context": [one.utterance.before] if one.utterance.before else [],
            "labels": sorted(one.labels),
            "judged": sorted(one.judged),
        }
        for one in some
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--rated", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, parts in sources(options.data).items():
        write(options.out / f"{name}.jsonl", [one for part in LEARNED for one in parts[part]])
        print(name, {part: len(some) for part, some in parts.items()})
    if options.rated:
        turns = [one for one in odes_turns.read(options.rated) if one.part == "learned"]
        write(options.out / "ji2022.jsonl", [one.example for one in turns] * TIMES)
        print("ji2022", len(turns))


if __name__ == "__main__":
    main()
