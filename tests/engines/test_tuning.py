"""Which weights are trained, and that trained ones come back as they were."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from causerie.engines.tuning import Tuning
from causerie.errors import CauserieError


def network(folder: Path) -> Any:
    from transformers import AutoModel

    return AutoModel.from_pretrained(folder).eval()


def output(model: Any) -> torch.Tensor:
    with torch.inference_mode():
        return model(input_ids=torch.tensor([[2, 7, 11, 3]])).last_hidden_state


def disturb(model: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter += 0.05 * torch.randn(parameter.shape, generator=generator)


ALL = [
    Tuning("full"),
    Tuning("full", layers=1),
    Tuning("adapter", rank=4),
    Tuning("adapter", rank=4, layers=1),
    Tuning("frozen"),
]


@pytest.mark.parametrize("tuning", ALL, ids=str)
def test_restored_is_trained(tiny_bert: Path, tuning: Tuning) -> None:
    trained = tuning.prepare(network(tiny_bert))
    before = output(trained)
    torch.testing.assert_close(before, output(network(tiny_bert)))
    disturb(trained)
    restored = tuning.restore(network(tiny_bert), tuning.weights(trained))
    torch.testing.assert_close(output(restored), output(trained.eval()), rtol=1e-4, atol=1e-5)
    changed = not torch.allclose(output(restored), before)
    assert changed == (tuning.kind != "frozen")
    assert type(restored) is type(network(tiny_bert))  # an adapter leaves no wrapper behind


@pytest.mark.parametrize("kind", ["full", "adapter"])
def test_last_layers_alone(tiny_bert: Path, kind: Any) -> None:
    model = Tuning(kind, rank=4, layers=1).prepare(network(tiny_bert))
    trained = [name for name, p in model.named_parameters() if p.requires_grad]
    assert trained
    assert all("layer.1." in name for name in trained)


def test_an_adapter_is_small(tiny_bert: Path) -> None:
    tuning = Tuning("adapter", rank=2)
    weights = tuning.weights(tuning.prepare(network(tiny_bert)))
    whole = sum(p.numel() for p in network(tiny_bert).parameters())
    assert 0 < sum(w.numel() for w in weights.values()) < whole / 4


@pytest.mark.parametrize("tuning", ALL[:4], ids=str)
def test_weights_that_do_not_fit_are_refused(tiny_bert: Path, tuning: Tuning) -> None:
    weights = tuning.weights(tuning.prepare(network(tiny_bert)))
    first = next(iter(weights))
    renamed = {f"other.{name}" if name == first else name: w for name, w in weights.items()}
    with pytest.raises(ValueError, match="not fit"):
        tuning.restore(network(tiny_bert), renamed)


def test_unknown_kind() -> None:
    with pytest.raises(CauserieError, match="tuning is full, adapter, frozen, not 'half'"):
        Tuning("half")  # type: ignore[arg-type]
