"""Keywords: the paper's formula against a naive implementation, and texts without keywords."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.errors import CauserieError
from causerie.text.keywords import Frequencies, Keyword, KeywordExtractor
from causerie.text.tagging import LexiconTagger, SpacyTagger, Token, lemma

CORPUS = ("The dog chased a ball.", "My dog sleeps.", "We saw old dogs and a cat", "Fine.")


@pytest.fixture(scope="module", autouse=True)
def _lexicon() -> None:
    """Load the lexicon first: it takes seconds, which hypothesis would count."""
    KeywordExtractor(Frequencies(10, {})).extract(["dogs"])


class ByHand:
    """A tagger of texts that spell out their tags: `dog/noun red/adjective the`."""

    name = "by hand"

    def tag(self, texts: Iterable[str]) -> Iterator[list[Token]]:
        for text in texts:
            pieces = [piece.partition("/") for piece in text.split()]
            yield [Token(word, kind or None) for word, _, kind in pieces]  # type: ignore[arg-type]


def test_a_score_worked_by_hand() -> None:
    """9 of 100 utterances have "dog": idf 1. One noun in 5 words: 2 * 1/5 * 1."""
    frequencies = Frequencies(100, {"dog": 9, "run": 9, "red": 9})
    extractor = KeywordExtractor(frequencies, ByHand())
    found = extractor.extract(["the dog/noun run/verb red/adjective the"])[0]
    assert [(k.word, k.kind, round(k.score, 9)) for k in found] == [
        ("dog", "noun", 0.4),
        ("run", "verb", 0.2),
    ]  # the adjective has 0.5 * 1/5 * 1 = 0.1, below 0.15


def test_what_equals_the_threshold_is_left_out() -> None:
    extractor = KeywordExtractor(Frequencies(100, {"dog": 9}), ByHand(), threshold=0.5)
    assert extractor.extract(["dog/noun a a a"]) == [()]
    assert extractor.extract(["dog/noun a a"])[0][0].word == "dog"


def test_a_word_of_two_kinds_counts_once_with_the_higher_weight() -> None:
    extractor = KeywordExtractor(Frequencies(100, {"love": 9}), ByHand())
    (found,) = extractor.extract(["love/verb a love/noun a"])
    assert found == (Keyword("love", "noun", 2.0 * 2 / 4 * 1.0),)


words = st.sampled_from(["dog", "run", "red", "x", "tree", "sky7", "the"])
kinds = st.sampled_from(["", "noun", "verb", "adjective"])
texts = st.lists(st.tuples(words, kinds), max_size=12).map(
    lambda pairs: " ".join(f"{word}/{kind}" for word, kind in pairs)
)


@given(st.lists(texts, max_size=6))
def test_equals_the_formula(corpus: list[str]) -> None:
    tagged = [[piece.split("/") for piece in text.split()] for text in corpus]
    weights = {"noun": 2.0, "verb": 1.0, "adjective": 0.5, "": 0.0}
    expected = []
    for text in tagged:
        scores: dict[str, float] = {}
        for word in {word for word, kind in text if kind and word.isalpha() and len(word) > 1}:
            documents = sum(any([word, k] in other for k in weights if k) for other in tagged)
            idf = math.log10(len(tagged) / (documents + 1))
            kinds_of = [kind for other, kind in text if other == word and kind]
            best = max(weights[kind] for kind in kinds_of)
            score = best * len(kinds_of) / len(text) * idf
            if score > 0.15:
                scores[word] = score
        expected.append(scores)
    frequencies = Frequencies.count(corpus, ByHand())
    found = KeywordExtractor(frequencies, ByHand()).extract(corpus)
    assert [{k.word: pytest.approx(k.score) for k in keywords} for keywords in found] == expected
    assert all(list(k) == sorted(k, key=lambda one: -one.score) for k in found)


def test_frequencies_count_utterances_not_words() -> None:
    frequencies = Frequencies.count(("dog dogs dog", *CORPUS))
    assert frequencies.utterances == 5
    assert frequencies.counts["dog"] == 4
    assert "the" not in frequencies.counts
    assert frequencies.idf("dog") == pytest.approx(math.log10(5 / 5))
    assert frequencies.idf("unheard") == pytest.approx(math.log10(5))
    assert frequencies.of({"dog"}) == Frequencies(5, {"dog": 4})


def test_frequencies_are_kept_in_a_file(tmp_path: Path) -> None:
    frequencies = Frequencies.count(CORPUS)
    frequencies.write(tmp_path / "f.json")
    assert Frequencies.read(tmp_path / "f.json") == frequencies
    for broken in ("", "[]", '{"utterances": 3}', json.dumps({"utterances": 1, "counts": [1]})):
        (tmp_path / "f.json").write_text(broken)
        with pytest.raises(CauserieError, match=r"f\.json holds no word frequencies"):
            Frequencies.read(tmp_path / "f.json")


def test_no_corpus_gives_no_keywords() -> None:
    assert KeywordExtractor(Frequencies.count(())).extract(["My dog sleeps."]) == [()]


def test_the_lexicon_tags_contractions_and_irregular_forms() -> None:
    (found,) = LexiconTagger().tag(["They're dirtier than my children's mice, which I didn’t see"])
    assert [(token.lemma, token.kind) for token in found] == [
        ("they", None),
        ("be", "verb"),
        ("dirty", "adjective"),
        ("than", None),
        ("my", None),
        ("child", "noun"),
        ("'s", None),
        ("mouse", "noun"),
        ("which", None),
        ("i", None),
        ("do", "verb"),
        ("n't", None),
        ("see", "verb"),
    ]


def test_case_does_not_matter() -> None:
    lower, upper = LexiconTagger().tag(["my dog likes running", "MY DOG Likes Running"])
    assert lower == upper


def test_lemmas() -> None:
    pairs = [("went", "verb"), ("mountains", "noun"), ("happier", "adjective"), ("zzgs", "noun")]
    assert [lemma(word, kind) for word, kind in pairs] == ["go", "mountain", "happy", "zzgs"]


@pytest.mark.parametrize(
    "text", ["", " ", "😀🎉", "12 34 5.6", "?!", "/ & //", "\n\n", "a", "\u200d\ufe0f"]
)
def test_texts_without_keywords(text: str) -> None:
    assert KeywordExtractor(Frequencies(1000, {})).extract([text]) == [()]


@given(st.lists(st.text(max_size=60), max_size=5))
def test_any_text_gives_keywords_or_none(several: list[str]) -> None:
    found = KeywordExtractor(Frequencies(1000, {})).extract(several)
    assert len(found) == len(several)
    for text, keywords in zip(several, found, strict=True):
        assert [keywords] == KeywordExtractor(Frequencies(1000, {})).extract([text])
        assert all(k.word.isalpha() and k.score > 0.15 for k in keywords)


def test_spacy_reads_a_pipeline_of_its_own(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy", reason="spaCy is not installed")
    pipeline = spacy.blank("en")
    ruler = pipeline.add_pipe("attribute_ruler")
    for word, penn in (("dogs", "NNS"), ("ran", "VBD"), ("the", "DT")):
        ruler.add([[{"LOWER": word}]], {"TAG": penn})
    pipeline.to_disk(tmp_path / "tiny")
    tagger = SpacyTagger(str(tmp_path / "tiny"))
    (found,) = tagger.tag(["The Dogs ran 😀!"])
    assert found == [Token("the", None), Token("dog", "noun"), Token("run", "verb")]
    with pytest.raises(CauserieError, match="spaCy has no pipeline"):
        SpacyTagger("no-such-pipeline")


def test_spacy_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(CauserieError, match=r"pip install 'causerie\[spacy\]'"):
        SpacyTagger()
