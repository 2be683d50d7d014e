"""The contract of every metric: identity by options, help, columns that match the scores."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causerie.dialogue import Dialogue, Exchange, Turn
from causerie.engines import Engines, Settings
from causerie.errors import CauserieError
from causerie.io import Rejected, read
from causerie.metrics import find, load_metric, names, trainable
from causerie.metrics.base import Level, Metric, Scores, scorable
from causerie.metrics.ranker import Ranker
from causerie.models import Store
from causerie.scoring.plan import Plan
from terminal import run_causerie

EXAMPLES = Path(__file__).parents[2] / "examples" / "conversations.jsonl"
ODD = Path(__file__).parents[1] / "golden" / "odd.jsonl"
CHANGED: dict[str, dict[str, Any]] = {
    "bleu": {"order": 2},
    "causalscore": {"score": "max", "history": 3},
    "cpmi": {"average": "hypothesis"},
    "cpmi-sym": {"history": 2},
    "density": {"distance": "euclidean", "dialogue": "rms"},
    "fed": {"average": "hypothesis", "history": 4},
    "judge": {"prompt": "checklist", "history": 2},
}
"""Options other than the defaults, for metrics that have options beside files."""
NO_DEFAULT = ("ranker",)
"""A metric without a default network."""
TRAINED = ("causalscore", "density", "faults", "grade", "odes", "quality", "slips")
USABLE = [name for name in names() if name not in NO_DEFAULT]
UNBOUNDED = ("cpmi", "cpmi-sym", "fed")
"""Metrics that are slow with a real language model and can have any score."""
NETWORKED = [name for name in USABLE if find(name).needs - {"references"}]
LEVELS: tuple[Level, ...] = ("turn", "dialogue")


def variants(name: str) -> list[Metric]:
    changed = CHANGED.get(name)
    return [load_metric(name), *([load_metric(name, **changed)] if changed else [])]


@pytest.mark.parametrize("name", names())
def test_equal_options_make_equal_metrics(name: str) -> None:
    for metric in variants(name):
        again = replace(metric)
        assert again is not metric
        assert again == metric
        assert hash(again) == hash(metric)
        assert len({again, metric}) == 1
    assert len(set(variants(name))) == len(variants(name))
    with pytest.raises(AttributeError):
        variants(name)[0].some_option = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", names())
def test_a_metric_can_be_sent_elsewhere(name: str) -> None:
    for metric in variants(name):
        copy = pickle.loads(pickle.dumps(metric))
        assert copy == metric
        assert hash(copy) == hash(metric)
        plan = Plan({"alias": metric})
        written = json.loads(plan.to_json())
        assert written["metrics"]["alias"]["metric"] == name
        assert Plan.from_json(plan.to_json()) == plan
        assert Plan.from_json(plan.to_json()).metrics["alias"] == metric


@pytest.mark.parametrize("name", names())
def test_every_option_has_help_and_a_type_that_is_checked(name: str) -> None:
    for one in fields(find(name)):
        assert one.metadata.get("help"), one.name
        with pytest.raises(CauserieError, match=f"{one.name} is "):
            load_metric(name, **{one.name: object()})


@pytest.mark.parametrize("name", [*TRAINED, "lm"])
def test_every_setting_of_a_training_has_help_and_a_type_that_is_checked(name: str) -> None:
    config = trainable(name).config
    for one in fields(config):
        assert one.metadata.get("help"), one.name
        with pytest.raises(CauserieError, match=f"{one.name} is "):
            config(**{one.name: object()})
        least = one.metadata["least"]
        if least is not None:
            with pytest.raises(CauserieError, match=f"{one.name} is at least {least}"):
                config(**{one.name: least - 1})


@pytest.mark.parametrize("name", TRAINED)
def test_settings_of_a_training_are_listed(name: str) -> None:
    done = run_causerie("metrics", name)
    assert done.returncode == 0, done.stderr
    for one in fields(trainable(name).config):
        assert f"\n{one.name} " in done.stdout, one.name


def test_what_is_trainable() -> None:
    for name in [*TRAINED, "lm"]:
        assert trainable(name).name == name
    with pytest.raises(CauserieError, match="metric bleu has nothing to train"):
        trainable("bleu")
    with pytest.raises(CauserieError, match="unknown metric 'densty': did you mean density"):
        trainable("densty")


@pytest.mark.parametrize("name", names())
@pytest.mark.parametrize("level", LEVELS)
def test_columns_say_what_they_are(name: str, level: Level) -> None:
    for metric in variants(name):
        columns = metric.columns(level)
        assert columns
        assert len({column.name for column in columns}) == len(columns)
        for column in columns:
            assert column.help
            low, high = column.range
            assert low is None or high is None or low < high
            assert column.better in ("higher", "lower", None)
            if column.better is None:
                assert column.worst is None


def test_signatures_are_told_without_torch_and_without_weights(tmp_path: Path) -> None:
    """In a new process, with an empty model store."""
    code = (
        "import sys\n"
        "import safetensors\n"
        "def refuse(*args, **kwargs): raise AssertionError('weights were opened')\n"
        "safetensors.safe_open = refuse\n"
        "from pathlib import Path\n"
        "from causerie.engines import Engines, Settings\n"
        "from causerie.metrics import load_metric, names\n"
        f"engines = Engines(Settings(models_dir=Path({str(tmp_path)!r}), offline=True))\n"
        f"for name in set(names()) - {set(NO_DEFAULT)!r}:\n"
        "    print(name, load_metric(name).signature(engines))\n"
        "assert 'torch' not in sys.modules\n"
        "assert 'safetensors.torch' not in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    told = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert set(told) >= {"bleu", *NETWORKED}
    assert all("@" in told[name] for name in NETWORKED)


def texts_of(dialogue: Dialogue) -> list[str]:
    return [turn.text for turn in dialogue.turns]


def check_rows(metric: Metric, level: Level, rows: Sequence[Scores]) -> int:
    """Check that every score is within its column's range or unscored; return their number."""
    scored = 0
    columns = metric.columns(level)
    for row in rows:
        for column, score in zip(columns, row, strict=True):
            if score.value is None:
                assert score.reason
                continue
            scored += 1
            low, high = column.range
            assert math.isfinite(score.value)
            assert low is None or score.value >= low - 1e-6, (metric, column)
            assert high is None or score.value <= high + 1e-6, (metric, column)
            assert score.percentile is None or column.calibrated
            assert score.percentile is None or 0 <= score.percentile <= 100
    return scored


def with_reference(dialogue: Dialogue) -> Dialogue:
    """Return exchanges in which the turn before the last serves as reference."""
    texts = texts_of(dialogue)
    turns = (
        replace(turn, references=(texts[i - 2],) if i > 1 else (turn.text,))
        for i, turn in enumerate(dialogue.turns)
    )
    return replace(dialogue, turns=tuple(turns))


def dialogues_of(path: Path, count: int) -> list[Dialogue]:
    good = [record for record in read(path) if not isinstance(record, Rejected)]
    found = [r.dialogue if isinstance(r, Exchange) else r for r in good]
    return [with_reference(dialogue) for dialogue in found[:count]]


@pytest.fixture(scope="module")
def tiny_engines(tiny_bert: Path, tiny_llama: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), lm=str(tiny_llama), device="cpu", threads=1))


@pytest.fixture(scope="module")
def default_engines(default_models: Store) -> Engines:
    return Engines(Settings(models_dir=default_models.folder))


def speak(texts: Sequence[str]) -> Dialogue:
    turns = tuple(Turn("AB"[i % 2], text) for i, text in enumerate(texts))
    return with_reference(Dialogue("d", turns))


ODD_TEXTS = st.lists(
    st.one_of(
        st.text(min_size=1, max_size=40),
        st.sampled_from(["!", "🙂", "שלום \u202eעולם", "\u200b", "a" * 400, "no no no", "\ud800"]),
    ),
    min_size=2,
    max_size=5,
)


@settings(max_examples=15)
@given(texts=ODD_TEXTS)
@pytest.mark.parametrize("name", [name for name in USABLE if name not in (*TRAINED, "meteor")])
def test_ranges_hold_whatever_is_said(name: str, tiny_engines: Engines, texts: list[str]) -> None:
    dialogue = speak(texts)
    for metric in variants(name):
        exchanges = scorable(dialogue, "all")
        rows = metric.score_exchanges(exchanges, tiny_engines, explain=True)
        assert len(rows) == len(exchanges)
        check_rows(metric, "turn", rows)
        whole = metric.score_dialogues([dialogue], tiny_engines, speaker="all", explain=True)
        check_rows(metric, "dialogue", whole)


def test_ranges_of_a_ranker_hold(tiny_ranker: Path) -> None:
    engines, metric = Engines(Settings(device="cpu")), Ranker(model=str(tiny_ranker))
    exchanges = [e for d in dialogues_of(ODD, 10) for e in scorable(d, "all")]
    assert check_rows(metric, "turn", metric.score_exchanges(exchanges, engines))
    assert str(tiny_ranker.parent) not in metric.signature(engines)


@pytest.mark.default_models
@pytest.mark.parametrize("name", [name for name in USABLE if name not in UNBOUNDED])
def test_ranges_hold_on_the_examples_and_on_odd_ones(name: str, default_engines: Engines) -> None:
    count = 1 if "language model" in find(name).needs else 3
    dialogues = [*dialogues_of(EXAMPLES, count), *dialogues_of(ODD, 5 * count)]
    exchanges = [exchange for one in dialogues for exchange in scorable(one, "all")][: 20 * count]
    for metric in variants(name):
        rows = metric.score_exchanges(exchanges, default_engines)
        if name != "meteor":  # WordNet may not be there
            assert check_rows(metric, "turn", rows)
        check_rows(metric, "dialogue", metric.score_dialogues(dialogues[:count], default_engines))


def test_a_single_text_is_no_input_of_the_encoder(tiny_engines: Engines) -> None:
    for wrong in (["some text"], [("some text",)], [["some text"]]):
        with pytest.raises(CauserieError, match=r'write \(\("text",\),\) for a single text'):
            tiny_engines.encoder.encode(wrong)  # type: ignore[arg-type]
    assert tiny_engines.encoder.encode([(("some text",),)]).shape == (1, 48)
