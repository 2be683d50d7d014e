"""The templates: what they stand for, that there are enough, and that none is in both parts."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.metrics.odes.config import OdesConfig
from causerie.metrics.odes.signals import (
    CLASSES,
    OTHER,
    Grammar,
    Template,
    Utterance,
    parse,
    shipped,
    vary,
)
from causerie.metrics.odes.train import Example, examples, folds
from causerie.text import words

FILE = """
# a remark
[lists]
animal = cat|dog
[systems]
hello.
[insult critique]
you are (dumb|a dumb {animal}) [really]
[other]
do you like cats? >> i have a {animal}
""".splitlines()


def test_a_file_of_templates_by_hand() -> None:
    grammar = parse(FILE)
    both, other = grammar.templates
    assert both == Template(
        frozenset({"insult", "critique"}), "you are (dumb|a dumb {animal}) [really]", None
    )
    assert (other.user, other.system) == ("i have a {animal}", "do you like cats?")
    found = {grammar.expand(both.user, random.Random(seed)) for seed in range(200)}
    ends = ("", " really")
    assert found == {
        f"you are {w}{end}" for w in ("dumb", "a dumb cat", "a dumb dog") for end in ends
    }
    said = grammar.utterances(other, 5, seed=0)
    assert {u.before.lower().rstrip(".!") for u in said if u.before} == {"do you like cats?"}


@pytest.mark.parametrize("section", ["[insulting]", "[other insult]"])
def test_a_section_names_signals(section: str) -> None:
    with pytest.raises(ValueError, match="is no set of signals"):
        parse([section, "you are dumb"])


def test_there_are_hundreds_of_utterances_of_every_class() -> None:
    grammar = shipped()
    counts: Counter[str] = Counter()
    for template in grammar.templates:
        made = grammar.utterances(template, 16, seed=0)
        assert made
        assert len({u.text for u in made}) == len(made)
        assert not any(mark in u.text + (u.before or "") for u in made for mark in "(){}[]|>")
        counts.update({label: len(made) for label in template.labels})
    assert set(counts) == set(CLASSES)
    assert min(counts.values()) >= 300
    assert counts[OTHER] > 2000


def test_templates_are_learned_or_tested_and_every_class_is_both() -> None:
    learned, tested = examples(OdesConfig(utterances=4))
    for part in (learned, tested):
        assert set().union(*(one.labels for one in part)) == set(CLASSES)
    assert 0.1 < len(tested) / len(learned) < 0.4
    learned_words = {tuple(words(one.utterance.text)) for one in learned}
    assert learned_words.isdisjoint(tuple(words(one.utterance.text)) for one in tested)
    assert examples(OdesConfig(utterances=4)) == (learned, tested)
    assert examples(OdesConfig(utterances=4, seed=1)) != (learned, tested)


def test_what_one_adds_is_not_tested() -> None:
    config = OdesConfig(utterances=4)
    learned, tested = examples(config)
    added = Utterance(f"{tested[0].utterance.text.upper()} !", None)
    own = [Example(added, tested[0].labels), Example(Utterance("zzz", None), frozenset({OTHER}))]
    more, fewer = examples(config, own)
    assert more == [*learned, *own]
    gone = tuple(words(added.text))
    assert fewer == [one for one in tested if tuple(words(one.utterance.text)) != gone]
    assert len(fewer) < len(tested)


def test_a_template_is_in_one_fold() -> None:
    parts = folds(OdesConfig(utterances=4))
    learned, _ = examples(OdesConfig(utterances=4))
    assert [one for part in parts[1:] for one in part] == learned
    grammar = shipped()
    for index in (0, 1, 7):
        made = grammar.utterances(grammar.templates[index], 4, seed=0)
        assert {u.text for u in made} <= {one.utterance.text for one in parts[index % 5]}


def test_no_text_has_two_meanings() -> None:
    """A template may not be written down under two headings."""
    grammar: Grammar = shipped()
    places = Counter((t.user, t.system) for t in grammar.templates)
    assert [place for place, count in places.items() if count > 1] == []


@given(st.text("abc'? ", min_size=1).filter(str.strip), st.integers())
def test_another_hand_leaves_something_to_read(text: str, seed: int) -> None:
    varied = vary(text.strip(), random.Random(seed))
    assert varied == vary(text.strip(), random.Random(seed))
    assert len(varied) <= len(text) + 30
