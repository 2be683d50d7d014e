"""Which weights of a backbone are trained: all, a low-rank adapter beside them, or none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

from causerie.errors import CauserieError
from causerie.models.artifact import damaged

if TYPE_CHECKING:
    from torch import Tensor

    from causerie.models.artifact import Artifact

_LAYER = re.compile(r"\b(?:layers?|h)\.(\d+)\.")

Kind = Literal["full", "adapter", "frozen"]


@dataclass(frozen=True)
class Tuning:
    """`full`: every weight; `adapter`: low-rank matrices of that rank; `frozen`: nothing."""

    kind: Kind
    rank: int = 16
    layers: int | None = None
    """Only the last so many layers, which saves much of the work; None: all."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise CauserieError(f"tuning is {', '.join(get_args(Kind))}, not {self.kind!r}")
        if any(type(n) is not int or n < 1 for n in (self.rank, self.layers) if n is not None):
            raise CauserieError("rank and layers are whole numbers of at least 1")

    def prepare(self, model: Any) -> Any:
        """The network with just those weights trainable."""
        if self.kind == "adapter":
            return self._adapted(model)
        model.requires_grad_(self.kind == "full")
        if self.kind == "full" and self.layers is not None:
            last = self._last(model)
            for name, parameter in model.named_parameters():
                parameter.requires_grad_(_layer(name) in last)
        return model

    def weights(self, model: Any) -> dict[str, Tensor]:
        """The trained weights of a prepared network."""
        if self.kind == "adapter":
            from peft import get_peft_model_state_dict

            adapter: dict[str, Tensor] = get_peft_model_state_dict(model)
            return adapter
        return {name: p.detach() for name, p in model.named_parameters() if p.requires_grad}

    def load(self, model: Any, weights: Mapping[str, Tensor]) -> None:
        """Put trained weights into a prepared network."""
        if self.kind == "adapter":
            from peft import set_peft_model_state_dict

            result = set_peft_model_state_dict(model, dict(weights))
            missing = [key for key in result.missing_keys if "lora_" in key]
        else:
            unused: tuple[str, ...] = getattr(model, "unused", ())
            used = {name: w for name, w in weights.items() if not name.startswith(unused)}
            result = model.load_state_dict(used, strict=False)
            trained = {name for name, p in model.named_parameters() if p.requires_grad}
            missing = sorted(trained.intersection(result.missing_keys))
        if missing or result.unexpected_keys:
            raise ValueError(f"the weights do not fit: {(missing or result.unexpected_keys)[0]}")

    def restore(self, model: Any, weights: Mapping[str, Tensor]) -> Any:
        """A fresh network with trained weights: an adapter merged in, or replaced as a whole."""
        if self.kind == "adapter":
            self._check_rank(weights)
        prepared = self.prepare(model)
        self.load(prepared, weights)
        if self.kind == "adapter":
            prepared = prepared.merge_and_unload()
        return prepared.eval()

    def _check_rank(self, weights: Mapping[str, Tensor]) -> None:
        """Before room is made for an adapter, whose rank may be anything in a file."""
        ranks = {len(weight) for name, weight in weights.items() if "lora_A" in name}
        if ranks != {self.rank}:
            raise ValueError(f"the weights are not of an adapter of rank {self.rank}")

    def _adapted(self, model: Any) -> Any:
        from peft import LoraConfig, get_peft_model

        config = LoraConfig(
            r=self.rank,
            lora_alpha=2 * self.rank,
            target_modules="all-linear" if self.layers is None else self._linear(model),
        )
        return get_peft_model(model, config)

    def _linear(self, model: Any) -> list[str]:
        """Names of the linear maps in the last layers."""
        from torch import nn
        from transformers.pytorch_utils import Conv1D  # what GPT-2 calls a linear map

        last = self._last(model)
        return [
            name
            for name, module in model.named_modules()
            if isinstance(module, (nn.Linear, Conv1D)) and _layer(name) in last
        ]

    def _last(self, model: Any) -> set[int]:
        """The numbers of the last layers."""
        count = int(model.config.num_hidden_layers)
        last = set(range(max(0, count - (self.layers or count)), count))
        if not last <= {_layer(name) for name, _ in model.named_parameters()}:
            raise CauserieError("the layers of this network have no numbers: tune them all")
        return last


def _layer(name: str) -> int | None:
    """Number of the layer to which a weight belongs, as BERT, Llama and GPT-2 name them."""
    found = _LAYER.search(name)
    return int(found[1]) if found else None


def tuned(model: Any, sha256: str, artifact: Artifact, part: str, tuning: Tuning) -> Any:
    """A freshly loaded network, whose files have that hash, with the artifact's weights."""
    if sha256 != artifact.backbone_sha256:
        raise CauserieError(
            f"this artifact of {artifact.metric} was trained on other weights of "
            f"{artifact.backbone}: run `causerie models verify`, or train it again"
        )
    try:
        return tuning.restore(model, artifact.part(part))
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise damaged(f"of {artifact.metric}", error) from error
