from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from causerie.engines import Settings
from causerie.errors import CauserieError


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:0", "cuda:11"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
def test_what_can_be_chosen(device: str, dtype: str) -> None:
    settings = Settings(device=device, dtype=dtype)
    assert (settings.device, settings.dtype) == (device, dtype)
    assert str(settings.torch_dtype()) == f"torch.{dtype}"


@pytest.mark.parametrize("device", ["", "gpu", "mps", "CPU", "cuda:", "cuda:x", "cuda:-1", "cpu\n"])
def test_unknown_devices(device: str) -> None:
    with pytest.raises(CauserieError, match=r"unknown device .*: use auto, cpu, cuda or cuda:N"):
        Settings(device=device)


@pytest.mark.parametrize("dtype", ["", "float64", "int8", "fp16", "nn"])
def test_unknown_dtypes(dtype: str) -> None:
    with pytest.raises(CauserieError, match=r"unknown dtype .*: use one of float32, bfloat16"):
        Settings(dtype=dtype)


def test_checking_does_not_take_torch() -> None:
    code = (
        "import sys, causerie; causerie.Settings(device='cuda:1'); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_threads_are_those_of_the_settings_while_networks_compute(tiny_bert: Path) -> None:
    """In a process of its own: torch has one number of threads for all that run in it."""
    code = (
        "import torch, sys\n"
        "from causerie.engines import Engines, Settings\n"
        "torch.set_num_threads(3)\n"
        f"engines = Engines(Settings(encoder={str(tiny_bert)!r}, threads=2))\n"
        "engines.signature('encoder'); engines.settings.torch_device()\n"
        "engines.encoder\n"
        "before = torch.get_num_threads()\n"
        "with engines.computing(): during = torch.get_num_threads()\n"
        "print(before, during, torch.get_num_threads())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["3", "2", "3"]
