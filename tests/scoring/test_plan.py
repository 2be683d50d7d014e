"""Plans: data that can be written down, sent and compared, and a signature without weights."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.engines import Settings
from causerie.errors import CauserieError, CauserieWarning
from causerie.metrics.base import Metric
from causerie.metrics.cosine import Cosine
from causerie.metrics.density import Density
from causerie.metrics.ngrams import Bleu
from causerie.metrics.sentinels import Length
from causerie.scoring import Plan

METRICS = {
    "bleu": Bleu(),
    "b2": Bleu(order=2),
    "cosine": Cosine(),
    "density": Density(distance="euclidean", dialogue="rms"),
    "length": Length(),
}

plans = st.builds(
    Plan,
    metrics=st.lists(st.sampled_from(sorted(METRICS)), min_size=1, unique=True).map(
        lambda names: {name: METRICS[name] for name in names}
    ),
    settings=st.builds(
        Settings,
        encoder=st.sampled_from(["default", "bert-base-uncased"]),
        dtype=st.sampled_from(["float32", "bfloat16"]),
        threads=st.none() | st.integers(1, 8),
        offline=st.booleans(),
    ),
    level=st.sampled_from(["turn", "dialogue"]),
    speaker=st.none() | st.text(max_size=8),
)


@given(plans)
def test_written_down_and_read_it_is_the_same(plan: Plan) -> None:
    again = Plan.from_json(plan.to_json())
    assert again == plan
    assert list(again.metrics) == list(plan.metrics)
    assert again.columns == plan.columns
    assert json.loads(plan.to_json())["level"] == plan.level


@given(plans)
def test_sent_to_another_process_it_is_the_same(plan: Plan) -> None:
    assert pickle.loads(pickle.dumps(plan)) == plan


def test_one_metric_twice_with_other_options() -> None:
    plan = Plan.of("bleu,b2=bleu:order=2")
    assert list(plan.columns) == ["bleu", "b2"]
    assert plan == Plan.of({"bleu": Bleu(), "b2": Bleu(order=2)})
    assert plan == Plan.of("bleu,b2=bleu", options={"b2": {"order": 2}})
    assert plan != Plan.of("bleu,b2=bleu:order=3")
    assert plan.signature.count("bleu(order=2)") == 1


def test_the_signature_opens_no_weights() -> None:
    """Nor does it import what could open them."""
    code = (
        "import sys, builtins; opened = builtins.open\n"
        "def watched(file, *a, **k):\n"
        "    assert not str(file).endswith(('.safetensors', '.gguf', '.bin')), file\n"
        "    return opened(file, *a, **k)\n"
        "builtins.open = watched\n"
        "from causerie.scoring import Plan\n"
        "print(Plan.of('density,causalscore,grade,odes,cosine,fed,cpmi,perplexity').signature)\n"
        "assert not {'torch', 'transformers', 'safetensors'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("density@", "causalscore@", "grade@", "odes@", "fed|lm", "encoder:all-MiniLM"):
        assert name in done.stdout


def test_everything_that_decides_numbers_is_in_the_signature() -> None:
    plain = Plan.of("density,perplexity,bleu")
    for other in (
        Plan.of("density:distance=euclidean,perplexity,bleu"),
        Plan.of("density,perplexity,bleu:order=2"),
        Plan.of("density,perplexity,bleu", settings=Settings(dtype="bfloat16")),
        Plan.of("density,perplexity,bleu", settings=Settings(turn_format="plain")),
        Plan.of("density,perplexity,bleu", settings=Settings(lm="qwen2.5-coder-0.5b")),
        Plan.of("density,perplexity,bleu", level="dialogue"),
        Plan.of("density,perplexity,bleu", speaker="user"),
    ):
        assert other.signature != plain.signature
    quicker = Settings(threads=3, device="cpu", offline=True)
    assert Plan.of("density,perplexity,bleu", settings=quicker).signature == plain.signature


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Plan.of("length", level="dialog"), "use turn or dialogue"),
        (lambda: Plan.of("lenght"), "did you mean length"),
        (lambda: Plan.of(""), "no metric is named"),
        (lambda: Plan.of("bleu:ordre=2"), "did you mean order"),
        (lambda: Plan.of("bleu:order=9"), "order is 4 or 3 or 2 or 1, not 9"),
        (lambda: Plan.of("bleu", options={"b2": {"order": 2}}), "options are given for b2"),
        (lambda: Plan.of("bleu,bleu:order=2"), "two metrics are called bleu"),
        (lambda: Plan.of([3]), "not as int"),  # type: ignore[list-item]
        (lambda: Plan.from_json("{}"), "not a plan"),
        (lambda: Plan.from_json("nonsense"), "not a plan"),
        (lambda: Plan.of("density", settings=Settings(encoder="x")).check_settings(), "no effect"),
        (lambda: Plan.of("cosine", settings=Settings(lm="x")).check_settings(), "no effect"),
    ],
)
def test_what_is_wrong_is_one_sentence(make: object, said: str) -> None:
    with pytest.raises(CauserieError, match=said):
        make()  # type: ignore[operator]


def test_a_metric_that_is_not_registered_cannot_be_written_down() -> None:
    @dataclass(frozen=True)
    class Mine(Metric):
        name = "mine"
        summary = "mine"

        def score_one(self, exchange: object) -> float:
            return 1.0

    with pytest.raises(CauserieError, match="entry point"):
        Plan.of(Mine()).to_json()


def test_who_keeps_their_own_network_is_said() -> None:
    plan = Plan.of("density,cosine,length", settings=Settings(encoder="somewhere"))
    with pytest.warns(CauserieWarning, match="--encoder somewhere has no effect on density: "):
        plan.check_settings()


def test_who_computes_in_float32_all_the_same_is_said() -> None:
    plan = Plan.of("density,causalscore", settings=Settings(backend="onednn-bf16"))
    with pytest.warns(CauserieWarning, match="onednn-bf16 would change the scores of causalscore"):
        plan.check_settings()
    assert [said.rpartition("|")[2] for said in plan.signatures.values()] == [
        "onednn-bf16",
        "onednn",
    ]
