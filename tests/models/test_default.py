from __future__ import annotations

import pytest
import torch

from causerie.models import Store, load_backbone

pytestmark = pytest.mark.default_models
CPU = torch.device("cpu")


def test_default_encoder(default_models: Store) -> None:
    backbone = load_backbone(default_models, "default", "encoder", dtype=torch.float32, device=CPU)
    assert backbone.name == "all-MiniLM-L6-v2"
    assert backbone.sha256 == "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert (backbone.window, backbone.pooling) == (256, "mean")


def test_default_language_model(default_models: Store) -> None:
    backbone = load_backbone(
        default_models, "default", "language model", dtype=torch.float32, device=CPU
    )
    assert backbone.name == "SmolLM2-135M-Instruct"
    assert backbone.window == 8192
    assert backbone.tokenizer.eos_token == "<|im_end|>"
    assert "<|im_start|>user\nHi<|im_end|>" in backbone.tokenizer.apply_chat_template(
        [{"role": "user", "content": "Hi"}], tokenize=False
    )
    inputs = backbone.tokenizer("The capital of France is", return_tensors="pt")
    with torch.inference_mode():
        logits = backbone.model(**inputs).logits
    assert logits.isfinite().all()
    assert backbone.tokenizer.decode(logits[0, -1].argmax()) == " Paris"
