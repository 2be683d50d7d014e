"""Rating models: eq. 5 and its parts against independent solvers, fitting, saving, transfer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize
from torch.nn import functional

from causerie import CauserieError, Engines, Settings
from causerie.engines.encoder import Encoder
from causerie.engines.tuning import Kind
from causerie.ratings import models as models_room
from causerie.ratings.examples import HELD_OUT, Example, prefixes, split, stratified_batches
from causerie.ratings.fitting import fit_model
from causerie.ratings.models import (
    MODELS,
    CfLstm,
    Length,
    Lstm,
    ModelConfig,
    Neural,
    RatingModel,
    build,
    one_thread,
)
from causerie.ratings.networks import (
    Batch,
    Fitting,
    Outcomes,
    Recurrent,
    factual,
    loss,
    wasserstein,
)

FEATURES = 3
SMALL = ModelConfig(width=8, head=4, epochs=4, batch=16, dropout=0.0)


def examples(count: int, seed: int = 0, treatments: int = 2) -> list[Example]:
    """Ratings are the last value of the first feature, minus a point if a signal fired."""
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        pairs = int(rng.integers(1, 9))
        features = rng.standard_normal((pairs, FEATURES)).astype(np.float32)
        fired = np.zeros(pairs, dtype=np.int64)
        treatment = int(rng.integers(treatments))
        if treatment:
            fired[rng.integers(pairs)] = treatment
        rating = float(np.clip(3.5 + features[-1, 0] - 1.0 * (treatment > 0), 1, 5))
        made.append(Example(features, fired, ("hello",) * pairs, rating))
    return made


def transport(cost: np.ndarray) -> float:
    """Solve optimal transport between equal weights as a linear programme."""
    n, m = cost.shape
    rows, columns = np.kron(np.eye(n), np.ones(m)), np.kron(np.ones(n), np.eye(m))
    marginals = np.concatenate([np.full(n, 1 / n), np.full(m, 1 / m)])
    solved = optimize.linprog(cost.ravel(), A_eq=np.vstack([rows, columns]), b_eq=marginals)
    return float(solved.fun)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 99))
def test_wasserstein_against_linear_programming(n: int, m: int, seed: int) -> None:
    torch.manual_seed(seed)
    a, b = torch.randn(n, 3), torch.randn(m, 3)
    assert float(wasserstein(a, b)) == pytest.approx(transport(torch.cdist(a, b).numpy()), abs=1e-5)


def test_the_gradient_of_wasserstein_is_that_of_finite_differences() -> None:
    torch.manual_seed(0)
    a, b = torch.randn(4, 2, dtype=torch.double), torch.randn(3, 2, dtype=torch.double)
    a.requires_grad_()
    wasserstein(a, b).backward()
    step = 1e-6
    for place in [(0, 0), (3, 1)]:
        moved = a.detach().clone()
        moved[place] += step
        slope = (wasserstein(moved, b) - wasserstein(a.detach(), b)) / step
        assert float(slope) == pytest.approx(float(a.grad[place]), abs=1e-4)


def network(heads: int) -> Outcomes:
    torch.manual_seed(1)
    return Outcomes(Recurrent(FEATURES, 8, 0.0), heads, 4)


def test_each_head_learns_only_from_its_own_treatment() -> None:
    def gradients(some: list[Example]) -> list[torch.Tensor]:
        net, batch = network(2), Batch.of(some)
        phi, outcomes = net(batch)
        loss(phi, outcomes, batch, 1.0).backward()
        return [torch.cat([p.grad.flatten() for p in h.parameters()]) for h in net.heads]

    some = examples(30)
    assert {one.treatment for one in some} == {0, 1}
    changed = [one if one.treatment else replace(one, rating=6 - one.rating) for one in some]
    (untreated, treated), (other, same) = gradients(some), gradients(changed)
    assert float(treated.abs().sum()) > 0
    torch.testing.assert_close(same, treated, rtol=0, atol=0)
    assert not torch.allclose(other, untreated)


def test_eq_5_by_hand() -> None:
    net, batch = network(2), Batch.of(examples(12))
    with torch.inference_mode():
        phi, outcomes = net(batch)
    treated = batch.treatments == 1
    errors = [
        ((outcomes[rows, t] - batch.ratings[rows]) ** 2).mean()
        for t, rows in enumerate((~treated, treated))
    ]
    apart = transport(torch.cdist(phi[~treated], phi[treated]).numpy())
    found = loss(phi, outcomes, batch, 0.5)
    assert float(found) == pytest.approx(float(sum(errors)) + 0.5 * apart, rel=1e-4)


def test_packed_dialogues_equal_one_by_one() -> None:
    net, some = network(2).eval(), examples(17)
    _, together = net(Batch.of(some))
    for row, one in zip(together, some, strict=True):
        _, alone = net(Batch.of([one]))
        torch.testing.assert_close(row, alone[0], rtol=1e-5, atol=1e-6)


@given(st.integers(1, 60), st.integers(1, 8), st.integers(0, 9))
@settings(max_examples=30)
def test_batches_have_every_treatment_and_every_example(
    count: int, batches: int, seed: int
) -> None:
    import random

    some = examples(count, seed, treatments=3)
    drawn = stratified_batches(some, batches, random.Random(seed))
    present = {one.treatment for one in some}
    assert all({one.treatment for one in batch} == present for batch in drawn)
    assert {id(one) for batch in drawn for one in batch} == {id(one) for one in some}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "transformer"])
def test_every_model_fits_predicts_and_is_restored(name: str) -> None:
    some = examples(60)
    model = build(name, SMALL, features=FEATURES)
    model.fit(*split(some))
    found = model.predict(some)
    assert np.isfinite(found).all()
    assert ((found >= 1) & (found <= 5)).all()
    again = build(name, SMALL, features=FEATURES)
    again.load(model.tensors())
    np.testing.assert_array_equal(again.predict(some), found)
    assert model.predict([]).shape == (0,)


def test_the_transformer_reads_text(tiny_bert: Path) -> None:
    engines = Engines(Settings(encoder=str(tiny_bert), device="cpu"))
    model = build("transformer", SMALL, features=FEATURES, engines=engines)
    some = examples(20)
    model.fit(*split(some))
    said = [Example(one.features, one.treatments, ("bye",), one.rating) for one in some]
    assert not np.allclose(model.predict(some[:1]), model.predict(said[:1]))


def test_a_tuned_transformer_learns_its_encoder_too_and_is_restored(tiny_bert: Path) -> None:
    engines = Engines(Settings(encoder=str(tiny_bert), device="cpu"))
    config = replace(SMALL, tuning="adapter", epochs=1)

    def built() -> RatingModel:
        return build("transformer", config, features=FEATURES, engines=engines)

    model, some = built(), examples(20)
    fresh = {name: tensor.clone() for name, tensor in model.tensors().items()}
    encoder = [name for name in fresh if name.startswith("body.encoder.")]
    assert encoder
    assert all("lora" in name for name in encoder)
    model.fit(*split(some))
    assert any(not torch.equal(model.tensors()[name], fresh[name]) for name in encoder)
    again = built()
    again.load(model.tensors())
    np.testing.assert_allclose(again.predict(some), model.predict(some), rtol=1e-5)
    with pytest.raises(ValueError, match="another network"):
        again.load({name: t for name, t in fresh.items() if name not in encoder})


def test_cf_lstm_learns_the_effect_of_its_simulator() -> None:
    config = ModelConfig(width=16, head=8, epochs=40, batch=32, dropout=0.0, patience=40)
    model = CfLstm(config, FEATURES)
    model.fit(*split(examples(400)))
    fresh = examples(200, seed=1)
    outcomes = model.outcomes(fresh)
    assert np.corrcoef(model.predict(fresh), [one.rating for one in fresh])[0, 1] > 0.7
    assert (outcomes[:, 1] - outcomes[:, 0]).mean() == pytest.approx(-0.9, abs=0.35)


def test_transfer_trains_new_heads_first_and_then_all(monkeypatch: pytest.MonkeyPatch) -> None:
    model, more = CfLstm(SMALL, FEATURES), split(examples(60, treatments=3))
    model.fit(*split(examples(60)))
    learned = model.tensors()
    with monkeypatch.context() as patch:
        patch.setattr(CfLstm, "fine_tune", lambda *arguments: None)
        added = model.transferred(3, *more)
    fresh = CfLstm(SMALL, FEATURES, 3).tensors()
    for name, tensor in added.tensors().items():
        if name in learned:
            torch.testing.assert_close(tensor, learned[name])
        else:
            assert not torch.equal(tensor, fresh[name])
    assert added.outcomes(more[0][:3]).shape == (3, 3)
    tuned = model.transferred(3, *more).tensors()
    assert any(not torch.equal(tuned[name], learned[name]) for name in learned)
    with pytest.raises(CauserieError, match="already has 2 treatments"):
        model.transferred(2, *more)
    with pytest.raises(CauserieError, match="in which a signal of treatment 2 fired"):
        model.transferred(3, *split(examples(60)))


def one(pairs: int, fired: list[int], rating: float) -> Example:
    treatments = np.zeros(pairs, dtype=np.int64)
    treatments[fired] = 1
    return Example(np.zeros((pairs, 1), np.float32), treatments, ("",) * pairs, rating)


def test_beginnings_are_of_all_dialogues_and_the_papers_of_low_ones_at_signals() -> None:
    low, good, short = one(6, [1, 3, 5], 2.0), one(9, [4], 5.0), one(2, [0], 4.0)
    ours = prefixes([low, good, short], "random")
    assert [m.rating for m in ours] == [2.0] * 3 + [5.0] * 3 + [4.0] * 3
    assert all(m.running for m in ours)
    lengths = {m.pairs for seed in range(60) for m in prefixes([low], "random", seed)}
    assert lengths == set(range(1, 7))
    papers = prefixes([low, good, short], "paper")
    assert [(m.pairs, m.rating, m.running) for m in papers] == [(2, 2.0, False), (4, 2.0, False)]
    assert prefixes([low], "none") == []


def test_a_network_knows_whether_a_dialogue_goes_on() -> None:
    """Whole dialogues are rated 5, and running ones with the same features 1."""
    some = [replace(m, rating=5.0) for m in examples(60)]
    begun = [replace(m, rating=1.0, running=True) for m in some]
    config = replace(SMALL, epochs=30, learning_rate=0.01, patience=30)
    model = build("lstm", config, features=FEATURES)
    model.fit(*split([*some, *begun]))
    assert model.predict(some).mean() - model.predict(begun).mean() > 1.5
    papers = build("lstm", replace(config, masking="paper"), features=FEATURES)
    papers.load(model.tensors())  # which takes beginnings for whole dialogues
    np.testing.assert_array_equal(papers.predict(some), papers.predict(begun))


@given(st.integers(8, 60), st.integers(0, 9))
@settings(max_examples=30)
def test_a_split_has_every_dialogue_once_and_every_treatment_on_either_side(
    count: int, seed: int
) -> None:
    some = examples(count, seed, treatments=3)
    train, held = split(some, seed)
    assert {id(m) for m in train} | {id(m) for m in held} == {id(m) for m in some}
    assert len(train) + len(held) == count
    assert len(held) == count // HELD_OUT
    for treatment in range(3):
        group = sum(m.treatment == treatment for m in some)
        inside = sum(m.treatment == treatment for m in held)
        assert abs(inside - group / HELD_OUT) < 1


def test_prefixes_are_on_the_side_of_their_dialogue(monkeypatch: pytest.MonkeyPatch) -> None:
    some = [replace(m, texts=(f"{n}",) * m.pairs) for n, m in enumerate(examples(60))]
    sides: list[tuple[set[str], set[str]]] = []

    counts: list[int] = []

    def seen(self: Neural, train: list[Example], held: list[Example], *rate: float) -> None:
        counts.append(len(train) + len(held))
        sides.append(({m.texts[0] for m in train}, {m.texts[0] for m in held}))

    monkeypatch.setattr(Neural, "_run", seen)
    model = build("lstm", SMALL, features=FEATURES)
    fit_model(model, some)
    fit_model(build("lstm", replace(SMALL, masking="paper"), features=FEATURES), some)
    (train, held), *others = sides
    assert not train & held
    assert others == [(train, held)] * 2
    low = [m for m in some if m.rating < 3]
    cut = sum(int((m.treatments[:-1] > 0).sum()) for m in low)
    assert counts == [60 * 4, 60, 60 + cut]


def test_tuning_that_does_not_help_is_undone(monkeypatch: pytest.MonkeyPatch) -> None:
    train, held = split(examples(60))
    model = Lstm(SMALL, FEATURES)
    model.fit(train, held)
    learned = {name: tensor.clone() for name, tensor in model.tensors().items()}
    wrong = [replace(m, rating=6 - m.rating) for m in train]
    model.fine_tune([*wrong] * 5, held)
    for name, tensor in model.tensors().items():
        torch.testing.assert_close(tensor, learned[name])


def test_length_is_the_best_line() -> None:
    rng = np.random.default_rng(0)
    pairs = rng.integers(1, 40, 300)
    x = np.log1p(pairs)
    ratings = np.clip(1 + 0.8 * x + 0.3 * rng.standard_normal(300), 1, 5)
    some = [one(int(n), [], float(r)) for n, r in zip(pairs, ratings, strict=True)]
    model = Length(SMALL)
    model.fit(*split(some))
    line = np.polyval(np.polyfit(x, ratings, 1), x).clip(1, 5)
    np.testing.assert_allclose(model.predict(some), line, atol=1e-3)


def test_a_network_starts_from_the_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Neural, "_run", lambda *arguments: None)
    some = examples(60)
    mean = np.mean([m.rating for m in split(some)[0]])
    for name in ("mlp", "lstm", "cf-lstm"):
        model = build(name, SMALL, features=FEATURES)
        model.fit(*split(some))
        assert np.abs(model.outcomes(some) - mean).max() < 1.0
        assert np.abs(model.outcomes(some).mean() - mean) < 0.5


def test_a_model_leaves_the_random_numbers_of_others_alone() -> None:
    torch.manual_seed(3)
    expected = torch.rand(3)
    torch.manual_seed(3)
    Lstm(SMALL, FEATURES)
    torch.testing.assert_close(torch.rand(3), expected)


def test_a_treatment_that_never_occurs_is_refused() -> None:
    model = CfLstm(SMALL, FEATURES)
    some = examples(60)
    for treatment, line in ((0, "in which a signal of treatment 1 fired"), (1, "no signal fired")):
        with pytest.raises(CauserieError, match=line):
            model.fit(*split([m for m in some if m.treatment == treatment]))


def test_what_cannot_be_fitted_is_one_line() -> None:
    model = Lstm(SMALL, FEATURES)
    with pytest.raises(CauserieError, match="3 rated dialogues are too few: give at least 8"):
        model.fit(examples(2), examples(1))
    with pytest.raises(CauserieError, match="learns only from rated dialogues"):
        model.fit(
            examples(9), [Example(np.zeros((1, 3), np.float32), np.zeros(1, np.int64), ("",))]
        )
    with pytest.raises(CauserieError, match="unknown model 'gru'"):
        build("gru", SMALL, features=1)


def test_factual_takes_the_head_of_the_treatment() -> None:
    outcomes = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert factual(outcomes, torch.tensor([1, 0])).tolist() == [2.0, 3.0]


def test_small_networks_are_fitted_with_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several threads would wait for each other; afterwards their number is restored."""
    seen: list[int] = []
    run = models_room.run_loop

    def watched(*arguments, **named):  # type: ignore[no-untyped-def]
        seen.append(torch.get_num_threads())
        return run(*arguments, **named)

    monkeypatch.setattr(models_room, "run_loop", watched)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        for name in ("mlp", "cf-lstm"):
            build(name, SMALL, features=FEATURES).fit(*split(examples(40)))
        assert (seen, torch.get_num_threads()) == ([1, 1], 2)
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_all_of_a_batch_is_where_the_network_is() -> None:
    """The meta device stands in for a GPU: mixing it with tensors on the CPU is an error."""
    batch = Batch.of(examples(5), "meta")
    moved = [value for value in vars(batch).values() if isinstance(value, torch.Tensor)]
    assert {value.device.type for value in moved if value is not batch.lengths} == {"meta"}
    assert batch.lengths.device.type == "cpu"  # which packing wants


@pytest.mark.parametrize("tuning", ["frozen", "adapter"])
def test_the_transformer_goes_to_the_device_of_its_encoder(
    tiny_bert: Path, monkeypatch: pytest.MonkeyPatch, tuning: Kind
) -> None:
    """On the meta device, as on a GPU, operations on tensors of two devices are errors."""
    engines = Engines(Settings(encoder=str(tiny_bert), device="cpu"))
    load = Engines.new_encoder

    def elsewhere(self: Engines, *arguments: Any, **named: Any) -> Encoder:
        encoder = load(self, *arguments, **named)
        encoder.model.to("meta")
        encoder.device = torch.device("meta")
        return encoder

    monkeypatch.setattr(Engines, "new_encoder", elsewhere)

    def encoded(self: Encoder, new: list[object], pooling: str) -> np.ndarray:
        return np.ones((len(new), self.dimension), np.float32)

    def forward(self: Encoder, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.ones(*batch["input_ids"].shape, self.dimension, device=self.device)

    monkeypatch.setattr(Encoder, "encode", encoded)
    monkeypatch.setattr(Encoder, "forward", forward)  # whose masks meta tensors cannot make
    config = replace(SMALL, tuning=tuning)
    model = build("transformer", config, features=FEATURES, engines=engines)
    assert isinstance(model, Neural)
    assert {p.device.type for p in model.network.parameters()} == {"meta"}
    assert model.network.start.device.type == "meta"
    some = examples(20)
    task = Fitting(model, *split(some))
    cost = task.loss(task.batch(0))
    assert cost.device.type == "meta"
    cost.backward()
    batch = Batch.of(some, model.device)
    _, outcomes = model.network(batch)
    chosen = factual(outcomes, batch.treatments)
    assert functional.mse_loss(chosen, batch.ratings).device.type == "meta"


def test_the_transformer_fits_in_whatever_precision_its_encoder_has(tiny_bert: Path) -> None:
    engines = Engines(Settings(encoder=str(tiny_bert), device="cpu", dtype="bfloat16"))
    for tuning in ("frozen", "adapter"):
        config = replace(SMALL, tuning=tuning, epochs=1)
        model = build("transformer", config, features=FEATURES, engines=engines)
        some = examples(20)
        model.fit(*split(some))
        assert np.isfinite(model.predict(some)).all()
