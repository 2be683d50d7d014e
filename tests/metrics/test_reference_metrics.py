"""Reference-based metrics, against the packages that define them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.metrics import load_metric
from causerie.metrics.base import Score
from causerie.metrics.ngrams import RougeWords

CASES = [
    ("I went hiking with my sister.", ["I went hiking in the mountains with my sister."]),
    ("That sounds great!", ["Sounds great to me.", "That sounds really great!", "No."]),
    ("Pizza.", ["Pizza."]),
    ("I don't know what you mean", ["My favourite food is pizza, isn't it?"]),
    ("the the the the", ["the cat", "the the dog"]),
]
ALL = ("bleu", "rouge", "meteor", "embedding", "bertscore", "cosine-ref")


def exchange(response: str, references: list[str]) -> Exchange:
    turns = Turn("A", "Tell me more."), Turn("B", response, references=tuple(references))
    return Exchange(Dialogue("d", turns), 1)


EXCHANGES = [exchange(*case) for case in CASES]


@pytest.fixture(scope="module")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), device="cpu"))


def values(rows: list[tuple[Score, ...]]) -> list[float | None]:
    return [score.value for (score,) in rows]


def column(name: str, engines: Engines | None = None, **options: object) -> list[float | None]:
    return values(load_metric(name, **options).score_exchanges(EXCHANGES, engines or Engines()))


@pytest.mark.parametrize("name", ALL)
def test_no_reference_is_unscored(name: str, engines: Engines) -> None:
    metric = load_metric(name)
    none, blank, some = metric.score_exchanges(
        [exchange("Hi.", []), exchange("Hi.", [" "]), exchange("Hi.", [" ", "Hi."])], engines
    )
    assert {score.reason for score in none + blank} == {"no reference"}
    assert len(none) == len(metric.columns("turn"))
    if name != "meteor":
        assert [score.value for score in some] == pytest.approx(
            [100 if name == "bleu" else 1] * len(some)
        )
    (dialogue,) = metric.score_dialogues([exchange("Hi.", []).dialogue], engines)
    assert {score.reason for score in dialogue} == {"no reference"}


def test_bleu() -> None:
    import sacrebleu

    expected = [sacrebleu.sentence_bleu(*case).score for case in CASES]
    assert column("bleu") == pytest.approx(expected)
    two = sacrebleu.metrics.BLEU(max_ngram_order=2, effective_order=True)
    expected = [two.sentence_score(*case).score for case in CASES]
    assert column("bleu", order=2) == pytest.approx(expected)
    assert column("bleu", order=2) != pytest.approx(column("bleu"))
    with pytest.raises(CauserieError, match="order is 4 or 3 or 2 or 1, not 5"):
        load_metric("bleu", order=5)
    two, four = (load_metric("bleu", order=order).signature(Engines()) for order in (2, 4))
    assert two != four


def test_rouge() -> None:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    expected = [
        max(scorer.score(reference, response)["rougeL"].fmeasure for reference in references)
        for response, references in CASES
    ]
    assert column("rouge") == pytest.approx(expected)


@given(st.text(st.characters(codec="ascii")))
def test_rouge_words_are_the_packages_in_ascii(text: str) -> None:
    from rouge_score.tokenizers import DefaultTokenizer

    assert RougeWords().tokenize(text) == DefaultTokenizer().tokenize(text)


def test_rouge_reads_every_script() -> None:
    rows = [exchange("भारत में बात", ["भारत में बात"]), exchange("今日は良い", ["今日は悪い"])]
    assert values(load_metric("rouge").score_exchanges(rows, Engines())) == pytest.approx([1, 0.8])


@pytest.mark.parametrize("name", ["bleu", "rouge", "meteor"])
def test_endless_texts_are_unscored(name: str) -> None:
    rows = [exchange("hello " * 900_000, ["hello"]), exchange("hello", ["hello " * 900_000])]
    scores = load_metric(name).score_exchanges(rows, Engines())
    assert [s.reason for (s,) in scores] == ["a text has more than 20,000 characters"] * 2


WORDNET = {
    "lexnames": "00\tnoun.artifact\t1\n",
    "cntlist.rev": "",
    "index.sense": "",
    **{f"{kind}.exc": "" for kind in ("adj", "adv", "noun", "verb")},
    **{f"{file}.{kind}": "" for file in ("index", "data") for kind in ("adj", "adv", "verb")},
    "index.noun": "car n 1 0 1 0 00000000  \nauto n 1 0 1 0 00000000  \n",
    "data.noun": "00000000 00 n 02 car 0 auto 0 000 | a motor vehicle  \n",
}

METEOR = """
import nltk
from pathlib import Path
from nltk.translate.meteor_score import meteor_score
from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Settings
from causerie.scoring.scorer import load

def score(response, references):
    turns = Turn("A", "Go on."), Turn("B", response, references=tuple(references))
    metric = load("meteor", Settings(models_dir=MODELS and Path(MODELS)))
    return metric.score(Exchange(Dialogue("d", turns), 1))["meteor"]

got = score("My auto, is fast!", ["I am slow", "my car is fast"])
direct = meteor_score(["i am slow".split(), "my car is fast".split()], "my auto is fast".split())
print(got.value == direct, round(direct, 4), score("!", ["car"]).reason)
"""


def test_meteor(tmp_path: Path) -> None:
    """With a WordNet of two words, in a new process, because NLTK caches what it has loaded."""
    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for name, text in WORDNET.items():
        (folder / name).write_text(text)
    code = f"import nltk.data; nltk.data.path = [{str(tmp_path)!r}]; MODELS = None\n{METEOR}"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr == ""
    # The synonym counts as a match: all four words in one chunk.
    assert found.stdout.split(maxsplit=2) == ["True", "0.9922", "no words in the response\n"]


def test_meteor_without_wordnet(tmp_path: Path) -> None:
    paths = f"nltk.data.path = [{str(tmp_path)!r}]; MODELS = {str(tmp_path)!r}"
    code = f"import nltk.data; {paths}\n" + METEOR.split("got =")[0]
    code += "print(score('Hi', ['Hi']).reason)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == ("WordNet is not here: run causerie models pull wordnet-3.1")


SYNSETS = """<SYNSETS>
<SYNSET><ID>1</ID><SYNONYM><LITERAL>car</LITERAL><LITERAL>auto</LITERAL>
<LITERAL>motor car</LITERAL></SYNONYM><DEF>a motor vehicle</DEF></SYNSET>
</SYNSETS>"""


def test_meteor_with_the_wordnet_of_the_store(tmp_path: Path) -> None:
    """NLTK's own reader with the same synset gives the same number."""
    from causerie.graph.wordnet import read_synonyms
    from causerie.metrics.ngrams import Synonyms

    (tmp_path / "wordnet.xml").write_text(SYNSETS)
    synonyms = Synonyms(read_synonyms(tmp_path / "wordnet.xml"))
    assert {lemma.name() for synset in synonyms.synsets("autos") for lemma in synset.lemmas()} == {
        "car", "auto", "motor_car",
    }  # fmt: skip
    (tmp_path / "wordnet-3.1").mkdir()
    (tmp_path / "wordnet-3.1" / "english_wordnet_version_31.xml").write_text(SYNSETS)
    paths = f"nltk.data.path = [{str(tmp_path)!r}]; MODELS = {str(tmp_path)!r}"
    code = f"import nltk.data; {paths}\n" + METEOR.split("direct =")[0]
    code += "print(round(got.value, 4), score('!', ['car']).reason)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stderr == ""
    assert found.stdout == "0.9922 no words in the response\n"


def test_bertscore(engines: Engines, tiny_bert: Path) -> None:
    from bert_score import BERTScorer

    scorer = BERTScorer(model_type=str(tiny_bert), num_layers=2, device="cpu", nthreads=0)
    _, _, expected = scorer.score(*map(list, zip(*CASES, strict=True)))
    assert column("bertscore", engines) == pytest.approx(expected.tolist(), rel=1e-4)


def test_bertscore_does_not_depend_on_the_batch(engines: Engines) -> None:
    metric = load_metric("bertscore")
    alone = [values(metric.score_exchanges([e], engines))[0] for e in EXCHANGES]
    backwards = values(metric.score_exchanges(EXCHANGES[::-1], engines))
    assert backwards == pytest.approx(alone[::-1], rel=1e-5)


def naive(response: np.ndarray, reference: np.ndarray) -> list[float]:
    """Compute average, extrema and greedy matching naively."""

    def cosine(a, b) -> float:
        return sum(a * b) / (sum(a * a) ** 0.5 * sum(b * b) ** 0.5)

    def extreme(rows) -> np.ndarray:
        return np.array([max(c) if max(c) > -min(c) else min(c) for c in zip(*rows, strict=True)])

    def match(rows, others) -> float:
        return sum(max(cosine(a, b) for b in others) for a in rows) / len(rows)

    return [
        cosine(sum(response) / len(response), sum(reference) / len(reference)),
        cosine(extreme(response), extreme(reference)),
        (match(response, reference) + match(reference, response)) / 2,
    ]


def best(response: np.ndarray, references: list[np.ndarray]) -> list[float]:
    return [max(v) for v in zip(*(naive(response, r) for r in references), strict=True)]


def test_embedding(engines: Engines) -> None:
    metric = load_metric("embedding")
    assert [c.name for c in metric.columns("turn")] == ["average", "extrema", "greedy"]
    model, tokenizer = engines.encoder.model, engines.encoder.input.tokenizer
    table = model.embeddings.word_embeddings.weight.detach().double().numpy()

    def vectors(text: str) -> np.ndarray:
        return table[tokenizer(text, add_special_tokens=False)["input_ids"]]

    rows = metric.score_exchanges(EXCHANGES, engines)
    for (response, references), row in zip(CASES, rows, strict=True):
        expected = best(vectors(response), [vectors(r) for r in references])
        assert [score.value for score in row] == pytest.approx(expected, rel=1e-4)


def glove(path: Path, header: str = "") -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    known = "i went hiking with my sister that sounds great pizza food the cat 今 ."
    table = {word: rng.normal(size=5).round(4) for word in known.split()}
    lines = [" ".join([word, *map(str, vector)]) for word, vector in table.items()]
    path.write_text(
        header + "\n".join([*lines, ". . . 1 2 3 4 5", "pizza 9 9 9 9 9"]) + "\n", "utf-8"
    )
    return table


@pytest.mark.parametrize("header", ["", "18 5\n"])
def test_embedding_with_a_file_of_vectors(tmp_path: Path, header: str) -> None:
    table = glove(tmp_path / "glove.txt", header)
    metric = load_metric("embedding", vectors=str(tmp_path / "glove.txt"))
    rows = [
        exchange("I went hiking, 今!", ["Pizza pizza?", "My sister went"]),
        exchange("Unheard-of", ["the cat"]),
        exchange("The cat", ["unheard-of"]),
    ]
    scored, no_response, no_reference = metric.score_exchanges(rows, Engines())
    response = np.array([table[word] for word in ("i", "went", "hiking", "今")])
    references = [[table["pizza"]] * 2, [table["my"], table["sister"], table["went"]]]
    expected = best(response, [np.array(r) for r in references])
    assert [score.value for score in scored] == pytest.approx(expected, rel=1e-5)
    assert {s.reason for s in no_response} == {"no word of the response has a vector"}
    assert {s.reason for s in no_reference} == {"no word of the reference has a vector"}
    signature = metric.signature(Engines())
    assert "glove" not in signature  # what is in the file counts, not where it is
    moved = (tmp_path / "glove.txt").rename(tmp_path / "moved.txt")
    assert load_metric("embedding", vectors=str(moved)).signature(Engines()) == signature
    moved.write_text(moved.read_text("utf-8") + "more 1 2 3 4 5\n", "utf-8")
    assert load_metric("embedding", vectors=str(moved)).signature(Engines()) != signature


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no word vectors"),
        (b"a 1 2 3\nb 1 2 x\n", "line 2 of .* is not a word and its numbers"),
        (b"a 1 2 3\n1 2 3\n", "line 2 of .* is not a word and its numbers"),
        (b"a 1 2 3\nb 1\n", "line 2 of .* is not a word and its numbers"),
        (b"a 1 2 3\n\xff 1 2 3\n", "line 2 of .* is not a word and its numbers"),
        (None, "cannot be read .No such file"),
    ],
)
def test_bad_file_of_vectors(tmp_path: Path, content: bytes | None, complaint: str) -> None:
    file = tmp_path / "glove.txt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CauserieError, match=complaint):
        load_metric("embedding", vectors=str(file)).score_exchanges(EXCHANGES, Engines())


def test_cosine_ref(engines: Engines) -> None:
    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    expected = [
        max(cosine(*engines.encoder.encode([((r,),), ((response,),)])) for r in references)
        for response, references in CASES
    ]
    assert column("cosine-ref", engines) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", ["embedding", "bertscore"])
def test_text_without_tokens_is_unscored(name: str, engines: Engines) -> None:
    rows = [exchange("\u200b", ["Hi."]), exchange("Hi.", ["\u200b"]), exchange("Hi.", ["Hi."])]
    *empty, scored = load_metric(name).score_exchanges(rows, engines)
    assert all(score.value is None and score.reason for row in empty for score in row)
    assert [score.value for score in scored] == pytest.approx([1] * len(scored))


def test_many_words_match_in_blocks() -> None:
    from causerie.metrics.similarity import best_cosines

    rng = np.random.default_rng(0)
    rows, others = rng.normal(size=(3000, 4)), rng.normal(size=(50, 4))
    norms = np.linalg.norm(rows, axis=1)[:, None] * np.linalg.norm(others, axis=1)
    np.testing.assert_allclose(best_cosines(rows, others), (rows @ others.T / norms).max(axis=1))
