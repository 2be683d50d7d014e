"""C_cond builds on C_uncond, which it does not change."""

from __future__ import annotations

import math

import pytest
import torch

from causerie.errors import CauserieError
from causerie.metrics.causalscore.classifier import GivenHead, TowersHead, places
from causerie.metrics.causalscore.config import CausalScoreConfig

NEAR = torch.tensor([[1, 2]])


@pytest.fixture
def heads() -> tuple[TowersHead, GivenHead]:
    torch.manual_seed(0)
    unconditional = TowersHead(2, 12, width=8, dropout=0.5)
    return unconditional, GivenHead(unconditional, 12, width=8, dropout=0.5)


def test_before_training_it_says_nearly_what_c_uncond_says(
    heads: tuple[TowersHead, GivenHead],
) -> None:
    unconditional, given = (head.eval() for head in heads)
    vectors = torch.randn(200, 3, 12, generator=torch.Generator().manual_seed(1))
    alone = unconditional(vectors[:, [0, 2]])
    both = torch.corrcoef(torch.stack([alone, given(vectors, NEAR.expand(200, 2))]))
    assert both[0, 1] > 0.9


def test_its_weights_are_its_own_and_c_uncond_learns_nothing_from_it(
    heads: tuple[TowersHead, GivenHead],
) -> None:
    unconditional, given = heads
    assert {name.split(".")[0] for name in given.state_dict()} == {"change", "weigh"}
    given.train()(torch.randn(5, 3, 12), NEAR.expand(5, 2)).sum().backward()
    assert all(weight.grad is None for weight in unconditional.parameters())
    assert all(weight.grad is not None for weight in given.parameters())
    assert not unconditional.training  # no dropout in what it says


def test_all_that_c_uncond_says_is_seen(heads: tuple[TowersHead, GivenHead]) -> None:
    """Each of its four answers changes the logit by its weight."""
    unconditional, given = (head.eval() for head in heads)
    vectors = torch.randn(4, 3, 12)
    with torch.no_grad():
        given.weigh.weight.copy_(torch.tensor([[2.0, 3.0, 5.0, 7.0]]))
        said = [unconditional(vectors[:, pair]) for pair in ([0, 2], [1, 2], [0, 1], [1, 0])]
        expected = given.change(vectors) + sum(
            weight * answer for weight, answer in zip((2, 3, 5, 7), said, strict=True)
        )
        torch.testing.assert_close(given(vectors, NEAR.expand(4, 2)), expected)


def test_it_can_be_told_where_utterances_stand(heads: tuple[TowersHead, GivenHead]) -> None:
    expected = [[0, math.log(3), 1, 0, 1], [math.log(3), 0, 0, 1, 0], [0, 0, 0, 0, 0]]
    found = places(torch.tensor([[1, 3], [3, 1], [0, 0]]))  # the last fills up a batch
    torch.testing.assert_close(found, 10 * torch.tensor(expected))
    told = GivenHead(heads[0], 12, width=8, dropout=0.0, distance=True).eval()
    deaf = heads[1].eval()
    vectors = torch.randn(2, 3, 12)
    near, far = torch.tensor([[1, 2]] * 2), torch.tensor([[5, 2]] * 2)
    with torch.no_grad():
        told.weigh.weight[0, 4] = -0.1
        torch.testing.assert_close(told(vectors, far), told(vectors, near) - math.log(5))
        torch.testing.assert_close(deaf(vectors, far), deaf(vectors, near))


@pytest.mark.parametrize(
    "wrong",
    [
        {"negatives": "match"},
        {"causes": "all"},
        {"interaction": "crossed"},
        {"epochs": -3},
        {"dropout": 1.0},
        {"history": 1},
        {"distance": True},
    ],
)
def test_settings_that_mean_nothing_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(CauserieError, match=next(iter(wrong))):
        CausalScoreConfig(**wrong)  # type: ignore[arg-type]
