"""Trees and the line against LightGBM, scikit-learn's formula and each other."""

from __future__ import annotations

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causerie.quality.learner import LEAF, Learner, Line, Trees


def data(rows: int = 300, columns: int = 6, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, columns))
    y = np.tanh(x[:, 0]) + (x[:, 1] > 0) * x[:, 2] + 0.1 * rng.normal(size=rows)
    return x, y


def test_trees_say_what_lightgbm_says(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = data()
    models = []
    train = lightgbm.train

    def kept(*arguments, **options):  # type: ignore[no-untyped-def]
        models.append(train(*arguments, **options))
        return models[-1]

    monkeypatch.setattr(lightgbm, "train", kept)
    trees = Trees.grow(x, y, np.ones(len(x)), trees=40, leaves=8, seed=1)
    new = data(seed=1)[0]
    np.testing.assert_allclose(trees(new), models[0].predict(new), rtol=1e-9, atol=1e-12)


def test_a_tree_by_hand() -> None:
    trees = Trees(
        np.array([[0, LEAF, LEAF]], np.int16),
        np.array([[0.5, 0, 0]]),
        np.array([[1, 0, 0]], np.int16),
        np.array([[2, 0, 0]], np.int16),
        np.array([[0.0, -1.0, 2.0]]),
    )
    assert trees(np.array([[0.5], [0.6]])).tolist() == [-1.0, 2.0]


def test_the_line_is_weighted_ridge_regression() -> None:
    x, y = data(80, 3)
    weights = np.linspace(0.5, 2, len(x))
    line = Line.fit(x, y, weights, penalty=5.0)
    z = np.clip((x - x.mean(0)) / x.std(0), -3, 3)

    def cost(w: np.ndarray, b: float) -> float:
        return float((weights * (z @ w + b - y) ** 2).sum() + 5.0 * (w**2).sum())

    best = cost(line.weights, line.offset)
    for step in np.eye(3) * 1e-3:
        assert cost(line.weights + step, line.offset) > best
        assert cost(line.weights - step, line.offset) > best
    assert cost(line.weights, line.offset + 1e-3) > best
    assert cost(line.weights, line.offset - 1e-3) > best


@given(st.permutations(range(20)))
def test_company_and_order_change_nothing(order: list[int]) -> None:
    x, _ = data()
    learner = _LEARNER
    whole = learner(x[:20])
    assert learner(x[order]).tolist() == whole[order].tolist()
    assert [learner(x[i : i + 1])[0] for i in range(20)] == whole.tolist()


def test_missing_numbers_are_usual_ones() -> None:
    x, _ = data()
    missing, usual = x[:5].copy(), x[:5].copy()
    missing[:, 1], usual[:, 1] = np.nan, _LEARNER.usual[1]
    assert _LEARNER(missing).tolist() == _LEARNER(usual).tolist()


def test_arrays_bring_it_back() -> None:
    x, _ = data()
    again = Learner.from_arrays(_LEARNER.arrays())
    assert again(x).tolist() == _LEARNER(x).tolist()


_LEARNER = Learner.fit(*data(), np.ones(300), trees=30)
