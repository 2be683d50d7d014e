"""Effects of signals on simulated logs with known truth; refuters; E-values."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from causerie import CauserieError
from causerie.ratings import effect as effect_room
from causerie.ratings.effect import (
    CAUSE,
    EXPECTED,
    PLACEBO,
    SUBSETS,
    WIDTH,
    Effect,
    comparable,
    doubly_robust,
    estimated,
    logistic,
    refute,
    ridge,
)
from causerie.ratings.evaluate import heads_effect
from causerie.ratings.study import LEAST, Observed, Study, study_of

SEEDS = 100
LONGEST = 12


@dataclass(frozen=True)
class World:
    """A simulated world: happy users signal more and rate better, as do users of long dialogues.

    Signals depend only on the past, and one or more of them cost `effect`. Everything that could
    happen in a dialogue is drawn first, so that the effect of a signal is known: none, if the
    user would have given another one later.
    """

    dialogues: int = 800
    effect: float = -0.5
    rate: float = -3.0
    """Log-odds of a signal in each turn."""
    gladness: float = 1.0
    """Effect of the mood on the log-odds of a signal."""
    length: float = 0.05
    """Effect of each turn pair on the rating."""
    users: int | None = None
    """Number of users with habits of rating and signalling; None for a new user per dialogue."""
    bots: float = 0.0
    """Effect of the better of two bots on ratings and on the log-odds of a signal."""

    def log(self, seed: int) -> tuple[list[Observed], float]:
        """Return its dialogues and the true average effect of the first signals."""
        rng = np.random.default_rng(seed)
        n, place = self.dialogues, np.arange(LONGEST)
        user = np.arange(n) if self.users is None else rng.integers(self.users, size=n)
        habits = rng.standard_normal((2, user.max() + 1))[:, user] * (self.users is not None)
        bot = rng.integers(2, size=n)
        length = rng.integers(3, LONGEST + 1, n)
        glad = rng.standard_normal(user.max() + 1)[user]
        x = glad[:, None, None] + rng.standard_normal((n, LONGEST, 2))
        mean = (np.cumsum(x[:, :, 0], 1) - x[:, :, 0]) / np.maximum(place, 1)
        last = np.where(place > 0, np.roll(x[:, :, 1], 1, 1), 0)
        odds = self.rate + self.gladness * (mean + 0.5 * last)
        odds += (self.bots * bot + 1.5 * habits[1])[:, None]
        within = place < length[:, None]
        fired = (rng.random((n, LONGEST)) < 1 / (1 + np.exp(-odds))) & within
        times = fired.sum(1)
        ratings = (
            3
            + 0.9 * (x[:, :, 0] * within).sum(1) / length
            + self.length * length
            + self.bots * bot
            + habits[0]
            + self.effect * (times > 0)
            + 0.5 * rng.standard_normal(n)
        )
        dialogues = [
            Observed(
                x[i, :pairs],
                np.ones(pairs, dtype=np.bool_),
                fired[i, :pairs, None],
                float(ratings[i]),
                f"bot{bot[i]}" if self.bots else None,
                None if self.users is None else str(user[i]),
            )
            for i, pairs in enumerate(length.tolist())
        ]
        return dialogues, self.effect * float((times[times > 0] == 1).mean())


Forget = Callable[[Observed], Observed]


def runs(world: World, forget: Forget = lambda one: one) -> tuple[list[Effect], float]:
    """Return an effect per seed, and the true one."""
    logs = [world.log(seed) for seed in range(SEEDS)]
    found = [doubly_robust(study_of(list(map(forget, log)), [0])) for log, _ in logs]
    return found, float(np.mean([truth for _, truth in logs]))


def covered(found: Sequence[Effect], truth: float) -> int:
    return sum(one.low <= truth <= one.high for one in found)


def test_the_interval_covers_the_truth_and_the_naive_difference_does_not() -> None:
    world = World()
    found, truth = runs(world)
    assert covered(found, truth) >= 90
    assert np.mean([one.estimate for one in found]) == pytest.approx(truth, abs=0.02)
    bias = abs(float(np.mean([one.naive for one in found])) - truth)
    assert np.mean([one.high - one.low for one in found]) <= bias / 2
    naive = 0
    for seed in range(SEEDS):
        log, _ = world.log(seed)
        parts = [[one.rating for one in log if one.fired.any() == had] for had in (True, False)]
        assert found[seed].naive == pytest.approx(np.mean(parts[0]) - np.mean(parts[1]))
        interval = stats.ttest_ind(*parts, equal_var=False).confidence_interval(0.95)
        naive += interval.low <= truth <= interval.high
    assert naive < 50


def test_signals_at_random_cost_nothing_though_long_talks_have_more_of_them() -> None:
    found, truth = runs(World(effect=0.0, gladness=0.0, length=0.1, rate=-2.75))
    assert truth == 0
    assert covered(found, 0.0) >= 90
    assert abs(np.mean([one.estimate for one in found])) < 0.02
    assert np.mean([one.naive for one in found]) > 0.1


def test_the_interval_of_a_rare_signal_covers_the_truth() -> None:
    found, truth = runs(World(dialogues=500, rate=-5.3))
    assert 30 < np.mean([one.signalled for one in found]) < 60
    assert covered(found, truth) >= 90


def test_dialogues_of_one_user_are_not_independent() -> None:
    world = World(dialogues=1000, effect=0.0, users=100)
    found, truth = runs(world)
    apart, _ = runs(world, lambda one: replace(one, user=None))
    assert covered(found, truth) >= 90
    assert covered(apart, truth) < 80


def test_bots_are_common_causes() -> None:
    world = World(dialogues=600, bots=1.0)
    found, truth = runs(world)
    unknown, _ = runs(world, lambda one: replace(one, bot=None))
    assert covered(found, truth) >= 90
    assert covered(unknown, truth) < 50


@pytest.mark.parametrize("broken", ["logistic", "ridge", None])
def test_one_of_the_two_models_may_be_wrong(
    broken: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def constant(x: np.ndarray, y: np.ndarray, start: object = None) -> object:
        class Same:
            weights = np.zeros(0)

            def __call__(self, z: np.ndarray) -> np.ndarray:
                return np.full(len(z), y.mean())

        return Same()

    for name in ("logistic", "ridge") if broken is None else (broken,):
        monkeypatch.setattr(effect_room, name, constant)
    estimates = [doubly_robust(linear(seed)).estimate for seed in range(5)]
    error = abs(np.mean(estimates) + 0.5)
    assert error > 0.3 if broken is None else error < 0.06


def linear(seed: int, rows: int = 4000) -> Study:
    """Simulate a study for which both models are correct and the treatment costs 0.5."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((rows, 3))
    treated = rng.random(rows) < 1 / (1 + np.exp(-(x @ [1, 0.7, 0])))
    ratings = 3 + x @ [0.8, 0.5, 0] - 0.5 * treated + 0.6 * rng.standard_normal(rows)
    return Study(x, treated, ratings, np.arange(rows), np.arange(rows))


def test_regressions_against_a_general_optimiser() -> None:
    study = linear(0, 200)
    x, y, treated = study.covariates, study.ratings, study.treated

    def squares(w: np.ndarray) -> float:
        return float(((y - w[0] - x @ w[1:]) ** 2).sum() + (w[1:] ** 2).sum())

    def likelihood(w: np.ndarray) -> float:
        z = w[0] + x @ w[1:]
        return float((np.logaddexp(0, z) - treated * z).sum() + 0.5 * (w[1:] ** 2).sum())

    expected = optimize.minimize(squares, np.zeros(4)).x
    np.testing.assert_allclose(ridge(x, y).weights, expected, atol=1e-4)
    expected = optimize.minimize(likelihood, np.zeros(4)).x
    np.testing.assert_allclose(logistic(x, treated).weights, expected, atol=1e-4)
    started = logistic(x, treated, np.array([0.5, -0.5, 1, 0]))
    np.testing.assert_allclose(started.weights, expected, atol=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["rare dummy", "long tail"])
def test_propensities_settle_where_covariates_are_skewed(kind: str, seed: int) -> None:
    """Full Newton steps would end, without an error, where every propensity is 0."""
    rng = np.random.default_rng(seed)
    if kind == "rare dummy":
        column = (rng.random(20_000) < 0.01).astype(float)
        odds = -5 + 4 * column
    else:
        column = rng.lognormal(0, 1.5, 10_000)
        odds = -4 + 0.1 * column
    treated = rng.random(len(column)) < 1 / (1 + np.exp(-odds))
    x = ((column - column.mean()) / column.std())[:, None]
    fitted = logistic(x, treated)
    p = fitted(x)
    gradient = np.array([(p - treated).sum(), ((p - treated) * x[:, 0]).sum() + fitted.weights[1]])
    np.testing.assert_allclose(gradient, 0, atol=1e-3)
    assert p.mean() == pytest.approx(treated.mean(), rel=1e-4)


def test_the_estimate_and_its_interval_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """With propensity ½ and outcome 3, treated rows count their surplus, controls minus theirs."""
    monkeypatch.setattr(effect_room, "logistic", lambda *_: fixed(0.5))
    monkeypatch.setattr(effect_room, "ridge", lambda *_: fixed(3.0))
    treated = np.array([True, False, True, False, False])
    ratings = np.array([2.0, 4.0, 1.0, 3.0, 3.5])
    unit = np.array([0, 1, 2, 2, 3])
    one = estimated(Study(np.zeros((5, 1)), treated, ratings, np.arange(5), unit))
    assert one.estimate == pytest.approx((-1 - 2 - 1 - 0 - 0.5) / 2)
    influence = np.array([-1 + 2.25, -1, -2 + 2.25 - 0, -0.5]) / 2
    assert one.error == pytest.approx(math.sqrt((influence**2).sum()))
    assert one.high - one.low == pytest.approx(2 * stats.t.ppf(0.975, 1) * one.error)
    assert one.naive == pytest.approx(1.5 - 10.5 / 3)
    assert (one.signalled, one.dialogues, one.left_out) == (2, 5, 0)
    assert one.effective == pytest.approx(3)  # three controls of one weight, by three users
    monkeypatch.setattr(effect_room, "logistic", lambda *_: fixed(0.99))
    with pytest.raises(CauserieError, match="no overlap: no landmark without the signal"):
        estimated(Study(np.zeros((5, 1)), treated, ratings, np.arange(5), unit))


def test_what_is_comparable_by_hand() -> None:
    treated = np.array([True, True, True, False, False])
    kept = comparable(np.array([0.3, 0.7, 0.95, 0.1, 0.6]), treated)
    assert kept.tolist() == [True, False, False, True, True]
    kept = comparable(np.array([0.3, 0.7, 0.95, 0.1, 0.99]), treated)  # nor where it is too likely
    assert kept.tolist() == [True, True, False, True, False]


def test_an_effect_without_overlap_is_refused() -> None:
    """If the past determines the signal, dialogues without it are not comparable."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((400, 1))
    treated = x[:, 0] + 0.05 * rng.standard_normal(400) > 0
    ratings = 3 + x[:, 0] + 0.5 * rng.standard_normal(400)
    with pytest.raises(CauserieError, match=r"no overlap|comparable ones are left out"):
        doubly_robust(Study(x, treated, ratings, np.arange(400), np.arange(400)))


def test_trimming_leaves_the_effect_of_the_others() -> None:
    """Users who always signal are left out, and the rest is estimated correctly."""
    rng = np.random.default_rng(1)
    always = np.arange(4000) < 400
    x = np.column_stack([rng.standard_normal(4000), 1.0 * always])
    treated = (rng.random(4000) < 1 / (1 + np.exp(-x[:, 0]))) | always
    ratings = 3 + x[:, 0] - 0.5 * treated - 2.0 * always + 0.5 * rng.standard_normal(4000)
    found = doubly_robust(Study(x, treated, ratings, np.arange(4000), np.arange(4000)))
    assert found.low <= -0.5 <= found.high
    assert found.left_out == pytest.approx(400 / treated.sum(), abs=0.03)
    assert found.effective > 100


def test_an_absurdly_wide_effect_does_not_stand() -> None:
    log, _ = World().log(1)
    sound = doubly_robust(study_of(log, [0]))
    assert refute(log, [0], sound)[-1].passed
    wide = refute(log, [0], replace(sound, low=-2.5, high=6.25))[-1]
    assert (wide.name, wide.passed) == (WIDTH, False)
    assert wide.found == pytest.approx(4.375 / sound.spread)


def fixed(value: float) -> object:
    class Fixed:
        weights = np.zeros(2)

        def __call__(self, x: np.ndarray) -> np.ndarray:
            return np.full(len(x), value)

    return Fixed()


def test_a_user_is_in_one_fold_and_signals_in_all() -> None:
    log, _ = World(users=100).log(0)
    study = study_of(log, [0])
    fold = effect_room._folds(study, 0)
    assert all(len(set(fold[study.unit == unit])) == 1 for unit in np.unique(study.unit))
    assert set(fold[study.treated]) == set(range(effect_room.FOLDS))


def test_refuters_let_a_sound_effect_stand() -> None:
    log, _ = World().log(1)
    tries = {one.name: one for one in refute(log, [0], doubly_robust(study_of(log, [0])))}
    assert tuple(tries) == tuple(EXPECTED) == (PLACEBO, CAUSE, SUBSETS, WIDTH)
    assert all(one.passed for one in tries.values())
    assert 0.5 < tries[SUBSETS].found < 1.7
    assert 0 < tries[CAUSE].found < 0.8


def test_subsets_refute_an_effect_that_hangs_on_a_few() -> None:
    log, _ = World(dialogues=300, rate=-5.0).log(0)
    rng = np.random.default_rng(0)
    wide = [
        replace(one, features=np.hstack([one.features, rng.standard_normal((len(one.spoke), 60))]))
        for one in log
    ]
    tries = {one.name: one for one in refute(wide, [0], doubly_robust(study_of(wide, [0])))}
    assert not tries[SUBSETS].passed


def test_an_effect_that_noise_changes_falls(monkeypatch: pytest.MonkeyPatch) -> None:
    log, _ = World().log(1)
    sound = doubly_robust(study_of(log, [0]))

    def unstable(study: Study, seed: int = 0) -> Effect:
        return replace(sound, estimate=sound.estimate + 3 * sound.error * study.covariates[0, -1])

    monkeypatch.setattr(effect_room, "estimated", unstable)
    assert not refute(log, [0], sound)[1].passed


def test_placebo_signals_refute_a_comparison_that_looks_ahead(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Controls that never signal are short dialogues, which are rated worse."""

    def ahead(dialogues: Sequence[Observed], signals: Sequence[int]) -> Study:
        study = study_of(dialogues, signals)
        never = np.array([not one.fired.any() for one in dialogues])[study.dialogue]
        return study.part(study.treated | never)

    log, _ = World(gladness=0.0, length=0.2, rate=-2.5).log(0)
    monkeypatch.setattr(effect_room, "study_of", ahead)
    assert not refute(log, [0], estimated(ahead(log, [0])))[0].passed


def test_e_values_by_hand() -> None:
    log, _ = World().log(0)
    one = doubly_robust(study_of(log, [0]))
    # the risk ratio of 3.9 with limits 1.8 and 8.7 of VanderWeele and Ding (2017): 7.26 and 3.0
    difference, nearer, other = (-math.log(ratio) / 0.91 for ratio in (3.9, 1.8, 8.7))
    known = replace(one, estimate=difference, low=other, high=nearer, spread=1.0)
    assert known.e_value == pytest.approx(7.26, abs=0.01)
    assert known.e_value_of_interval == pytest.approx(3.0, abs=0.01)
    positive = replace(known, estimate=-difference, low=-nearer, high=-other)
    assert positive.e_value_of_interval == known.e_value_of_interval
    assert replace(known, spread=2.0).e_value < known.e_value
    assert replace(known, high=0.1).e_value_of_interval == 1.0


def test_too_few_users_are_refused() -> None:
    log, _ = World(users=10).log(0)
    with pytest.raises(CauserieError, match=rf"only 10 users.*the signal.*at least {LEAST}"):
        doubly_robust(study_of(log, [0]))
    always = [replace(one, fired=np.ones_like(one.fired), user=None) for one in log]
    with pytest.raises(CauserieError, match=r"only 0 users.*with none"):
        doubly_robust(study_of(always, [0]))
    with pytest.raises(CauserieError, match="no dialogue has the signal"):
        study_of([replace(one, fired=np.zeros_like(one.fired)) for one in log], [0])


def observed(values: Sequence[float], fired: Sequence[str], **known: object) -> Observed:
    """Build a dialogue from letters: the signals of each pair, "-" if the user said nothing."""
    return Observed(
        np.array(values, dtype=np.float64)[:, None],
        np.array([letters != "-" for letters in fired]),
        np.array([[letter in letters for letter in "ab"] for letters in fired]),
        **{"rating": 3.0, **known},  # type: ignore[arg-type]
    )


def test_landmarks_by_hand() -> None:
    late = observed([1, 3, 100, 100], ["", "", "a", "b"], rating=2.0, user="x")
    silent = observed([5, 7], ["-", ""], rating=4.0)
    other = observed([50, 60], ["", "b"], rating=1.0, user="x")
    both = observed([9], ["ab"], rating=5.0)
    log = [late, silent, other, both]
    study = study_of(log, [0])
    assert study.dialogue.tolist() == [0, 0, 0, 1, 2, 3]  # other's second pair has only b
    assert study.treated.tolist() == [False, False, True, False, False, True]
    assert study.ratings.tolist() == [2, 2, 2, 4, 1, 5]
    assert study.unit.tolist() == [0, 0, 0, 1, 0, 2]
    log2, log3 = math.log(2), math.log(3)
    np.testing.assert_allclose(
        study.covariates,  # mean, last, place, its logarithm, whether it is the first
        [
            [0, 0, 0, 0, 1],
            [1, 1, 1, log2, 0],
            [2, 3, 2, log3, 0],
            [5, 5, 1, log2, 0],
            [0, 0, 0, 0, 1],
            [0, 0, 0, 0, 1],
        ],
    )
    assert study_of(log, [0, 1]).treated.tolist() == [False, False, True, False, False, True, True]


def test_bots_with_enough_dialogues_are_covariates() -> None:
    log = [observed([1], ["a"], bot=name) for name in ["x"] * LEAST + ["y"] * (LEAST - 1)]
    np.testing.assert_array_equal(study_of(log, [0]).covariates[:, 5:].T, [[1] * 20 + [0] * 19])


dialogues = st.lists(
    st.lists(
        st.tuples(st.integers(-3, 3), st.sampled_from(["", "", "", "-", "a", "b", "ab"])),
        min_size=1,
        max_size=6,
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=50)
@given(dialogues)
def test_what_follows_a_signal_decides_nothing(log: list[list[tuple[int, str]]]) -> None:
    known = [observed(*zip(*pairs, strict=True)) for pairs in [*log, [(0, "a")]]]
    cut, rows = [], 0
    for one in known:
        places = np.flatnonzero(one.fired.any(1))
        end = int(places[0]) + 1 if len(places) else len(one.spoke)
        features = one.features[:end].copy()
        features[end - 1] = 99  # what is measured in the pair itself comes with the signal
        cut.append(Observed(features, one.spoke[:end], one.fired[:end], one.rating))
        only_b = bool(one.fired[end - 1, 1] and not one.fired[end - 1, 0])
        rows += int(one.spoke[:end].sum()) - only_b
    study, again = study_of(known, [0]), study_of(cut, [0])
    assert len(study.treated) == rows
    np.testing.assert_allclose(study.covariates, again.covariates)
    np.testing.assert_array_equal(study.treated, again.treated)


def test_the_difference_of_heads_by_hand() -> None:
    outcomes = np.array([[4.0, 3.0], [5.0, 2.0], [3.0, 3.0]])
    ratings = np.array([4.0, 3.0, 2.0])
    found = heads_effect(outcomes, np.array([0, 1, 1]), ratings)
    assert found.effect == pytest.approx((-1 - 3 + 0) / 3)
    assert found.factual_error == pytest.approx((0 + 1 + 1) / 3)
    assert found.counterfactual_gap == pytest.approx((1 + 9 + 0) / 3)
