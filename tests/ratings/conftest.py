"""An odes classifier on a tiny encoder, and logs in which swearing costs stars."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import torch

from causerie import Engines, Settings
from causerie.metrics.odes import SIGNALS, TREATMENTS, Utterance
from causerie.metrics.odes.classifier import Classifier
from causerie.metrics.odes.config import OdesConfig
from causerie.models.artifact import Artifact

SAID = ("that is great", "i love it", "wonderful", "awful", "i hate this", "bad")
LETTERS = "abcdefgh"


@pytest.fixture(scope="session")
def engines(tiny_bert: Path) -> Engines:
    return Engines(Settings(encoder=str(tiny_bert), device="cpu"))


def record(number: int, rng: Random) -> dict[str, Any]:
    """Return a dialogue of three to six pairs; happier users rate better."""
    glad = rng.random()
    happy, sad = SAID[:3], SAID[3:]
    turns = []
    for _ in range(rng.randint(3, 6)):
        said = rng.choice(happy if rng.random() < glad else sad)
        turns += [
            {"speaker": "user", "text": f"{said} {rng.choice(LETTERS)}"},
            {"speaker": "bot", "text": rng.choice(["tell me more", "i like cats", "okay"])},
        ]
    return {
        "id": f"d{number}",
        "turns": turns,
        "rating": round(1 + 4 * glad),
        "date": f"2026-03-{1 + number % 12:02d}",
        "bot": f"bot{number % 3}",
    }


_RNG = Random(0)
RECORDS = [record(number, _RNG) for number in range(60)]


@pytest.fixture(scope="session")
def log_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, RECORDS)))
    return path


@pytest.fixture(scope="session")
def odes_folder(engines: Engines, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained classifier in which one relevant signal fires in half of the dialogues."""
    encoder = engines.encoder  # before the seed: loading draws random numbers
    torch.manual_seed(5)
    config = OdesConfig(width=8, hidden=8)
    classifier = Classifier(encoder, config)
    with torch.no_grad():
        strongest = [
            classifier.probabilities(
                [
                    Utterance(turns[n]["text"], turns[n - 1]["text"] if n else None)
                    for n in range(0, len(turns), 2)
                ]
            )[:, [SIGNALS.index(name) for name in TREATMENTS]].max()
            for turns in (one["turns"] for one in RECORDS)
        ]
        bias = classifier.head.get_parameter("members.0.classes.bias")
        bias += float(np.median(np.log(1 / np.array(strongest) - 1)))
    artifact = Artifact(
        metric="odes",
        backbone=engines.encoder.name,
        backbone_sha256=engines.encoder.sha256,
        options=asdict(config),
        network={f"head.{key}": t for key, t in classifier.head.state_dict().items()},
        statistics={},
        card="",
        licence="",
    )
    folder = tmp_path_factory.mktemp("odes") / "odes"
    artifact.save(folder)
    return folder
