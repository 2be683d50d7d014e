"""Losses, Gaussian and distances against naive versions of the paper's formulas."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from causerie.metrics.density.gaussian import Gaussian, Moments
from causerie.metrics.density.network import contrastive_loss, selection_loss

seeds = st.integers(0, 2**32 - 1)


def repeated(rng: np.random.Generator, contexts: int, candidates: int) -> np.ndarray:
    """Mark some candidates as copies of the true response, but never the true one itself."""
    same = rng.random((contexts, candidates)) < 0.2
    same[:, 0] = False
    return same


@given(seeds, st.integers(1, 5), st.integers(2, 6))
def test_selection_loss_is_equation_1(seed: int, contexts: int, candidates: int) -> None:
    rng = np.random.default_rng(seed)
    f = rng.normal(size=(contexts, candidates))
    same = repeated(rng, contexts, candidates)
    rows = zip(f, same, strict=True)
    naive = np.mean([-math.log(math.exp(r[0]) / np.exp(r[~marked]).sum()) for r, marked in rows])
    assert selection_loss(torch.tensor(f), torch.tensor(same)).item() == pytest.approx(naive)


@given(seeds, st.integers(2, 5), st.integers(1, 4), st.floats(0.05, 1))
def test_contrastive_loss_is_equation_4(
    seed: int, contexts: int, candidates: int, temperature: float
) -> None:
    rng = np.random.default_rng(seed)
    h = rng.normal(size=(contexts, candidates, 6))
    same = repeated(rng, contexts, candidates)
    z = h / np.linalg.norm(h, axis=-1, keepdims=True)
    everything = [(i, j) for i in range(contexts) for j in range(candidates) if not same[i, j]]
    total = 0.0
    for i in range(contexts):
        below = sum(math.exp(z[i, 0] @ z[a] / temperature) for a in everything if a != (i, 0))
        positives = [p for p in range(contexts) if p != i]
        total += -sum(
            math.log(math.exp(z[i, 0] @ z[p, 0] / temperature) / below) for p in positives
        ) / len(positives)
    ours = contrastive_loss(torch.tensor(h), torch.tensor(same), temperature).item()
    assert ours == pytest.approx(total / contexts)


def test_one_true_pair_alone_has_nothing_to_be_alike() -> None:
    features = torch.randn(1, 4, 3, requires_grad=True)
    loss = contrastive_loss(features, torch.zeros(1, 4, dtype=torch.bool), 0.1)
    loss.backward()
    assert loss.item() == 0
    assert torch.equal(features.grad, torch.zeros_like(features))


@given(seeds, st.lists(st.integers(1, 40), min_size=1, max_size=6), st.integers(1, 8))
def test_streamed_moments_equal_numpy(seed: int, sizes: list[int], width: int) -> None:
    rng = np.random.default_rng(seed)
    batches = [rng.normal(5, 3, size=(size, width)).astype(np.float32) for size in sizes]
    moments = Moments(width)
    for batch in batches:
        moments.add(batch)
    whole = np.concatenate(batches).astype(np.float64)
    np.testing.assert_allclose(moments.mean, whole.mean(axis=0), rtol=1e-9)
    naive = np.cov(whole.T, bias=True).reshape(width, width)
    np.testing.assert_allclose(moments.covariance, naive, rtol=1e-7, atol=1e-9)


def fitted(human: np.ndarray, floor: float) -> Gaussian:
    moments = Moments(human.shape[1])
    moments.add(human)
    return Gaussian.fit(moments, floor)


@given(seeds)
def test_distances_equal_the_formula(seed: int) -> None:
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(200, 5)) @ rng.normal(size=(5, 5))
    gaussian = fitted(human, floor=0)
    h = rng.normal(size=(7, 5))
    inverse = np.linalg.pinv(np.cov(human.T, bias=True))
    naive = [math.sqrt((x - human.mean(0)) @ inverse @ (x - human.mean(0))) for x in h]
    np.testing.assert_allclose(gaussian.mahalanobis(h), naive, rtol=1e-2)
    naive = [math.dist(x, human.mean(0)) for x in h]
    np.testing.assert_allclose(gaussian.euclidean(h), naive, rtol=1e-5)


@given(seeds, st.floats(1e-3, 0.5))
def test_the_floor_is_on_the_eigenvalues(seed: int, floor: float) -> None:
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(300, 4)) * [3, 1, 0.1, 1e-8]
    covariance = np.cov(human.T, bias=True)
    values, vectors = np.linalg.eigh(covariance)
    values = np.maximum(values, floor * values.mean())
    inverse = vectors @ np.diag(1 / values) @ vectors.T
    h = rng.normal(size=(5, 4))
    naive = [math.sqrt((x - human.mean(0)) @ inverse @ (x - human.mean(0))) for x in h]
    np.testing.assert_allclose(fitted(human, floor).mahalanobis(h), naive, rtol=1e-3)


def test_flat_directions_do_not_decide() -> None:
    human = np.random.default_rng(0).normal(size=(500, 4)) * [1, 1, 1, 1e-9]
    moments = Moments(4)
    moments.add(human)
    gaussian = Gaussian.fit(moments)
    near, far = np.zeros((1, 4)), np.array([[0, 0, 0, 1e-3]])
    assert gaussian.mahalanobis(far) - gaussian.mahalanobis(near) < 0.1
    assert np.isfinite(gaussian.whitening).all()
