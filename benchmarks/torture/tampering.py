"""Tampering: what was changed is refused, or the scores are the same."""

from __future__ import annotations

import json
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from common import Amounts, Tally, dialogues, sentence, tiny, write_jsonl

if TYPE_CHECKING:
    from causerie.progress import Progress


def tampered(rng: random.Random, files: list[Path]) -> tuple[Path, bytes, str]:
    """One file of several changed; returns it with what it was and what was done."""
    while True:
        path, before, kind = _tampered(rng, files)
        if path.read_bytes() != before:
            return path, before, kind


def _tampered(rng: random.Random, files: list[Path]) -> tuple[Path, bytes, str]:
    path = rng.choice(files)
    before = path.read_bytes()
    made = bytearray(before)
    kind = rng.choice(["flip", "flip", "truncate", "append", "zero", "swap", "value"])
    place = rng.randrange(len(made))
    if kind == "flip":
        made[place] ^= 1 << rng.randrange(8)
    elif kind == "truncate":
        del made[place:]
    elif kind == "append":
        made += rng.randbytes(rng.randint(1, 40))
    elif kind == "zero":
        made[place : place + 64] = bytes(len(made[place : place + 64]))
    elif kind == "swap":
        half = len(made) // 2
        made = made[half:] + made[:half]
    elif path.suffix == ".json":
        digest, text = _parts(before)
        content = json.loads(text)
        if isinstance(content, dict) and content:
            odd = [None, [], {}, "x", -1, 10**30, "../../etc/passwd", [[[]]], True]
            content[rng.choice(sorted(content))] = rng.choice(odd)
            made = bytearray(digest + json.dumps(content).encode())
    path.write_bytes(bytes(made))
    return path, before, kind


def _parts(content: bytes) -> tuple[bytes, bytes]:
    """The digest on the first line, where there is one, and the JSON."""
    line, end, rest = content.partition(b"\n")
    return (line + end, rest) if re.fullmatch(rb"[0-9a-f]{64}", line) else (b"", content)


def tamper(
    rng: random.Random, tally: Tally, files: list[Path], same: Callable[[], bool], count: int
) -> None:
    """Change one of the files again and again: it is refused, or everything is the `same`."""
    from causerie.errors import CauserieError

    for _ in range(count):
        path, before, kind = tampered(rng, files)
        tally.counts[kind] += 1
        try:
            if same():
                tally.counts["same"] += 1
            else:
                tally.fault(f"{path.name} ({kind}): silently different")
        except CauserieError:
            tally.counts["refused"] += 1
        except Exception as error:
            tally.fault(f"{path.name} ({kind}): {type(error).__name__}: {error}"[:200])
        path.write_bytes(before)


def tampered_artifacts(rng: random.Random, folder: Path, count: int, encoder: str) -> Tally:
    from causerie.dialogue import Dialogue
    from causerie.engines import Engines, Settings
    from causerie.models.artifact import ArtifactInfo
    from causerie.scoring import Plan, Scorer

    tally = Tally("tampered artifacts")
    dialogue = Dialogue.from_texts(["Do you like music?", "I play the guitar.", "Stop it, please."])
    shared = Engines(Settings())
    networks = {"encoder": shared.encoder}

    def scores(metric: str, place: Path) -> list[dict[str, float | None]]:
        engines = Engines(Settings())
        engines.shared("encoder", lambda: networks["encoder"])
        plan = Plan.of(f"{metric}:artifact={place}", speaker="all")
        rows = Scorer(plan, engines=engines).score(dialogue)
        return [{name: score.value for name, score in row.items()} for row in rows]

    def unchanged(metric: str, place: Path, expected: list[dict[str, float | None]]) -> bool:
        return scores(metric, place) == expected

    for metric in ("causalscore", "odes"):
        place = folder / metric
        shutil.copytree(ArtifactInfo.find(metric, metric).folder, place)
        files = [p for p in place.iterdir() if p.suffix in (".json", ".safetensors")]
        same = partial(unchanged, metric, place, scores(metric, place))
        tamper(rng, tally, files, same, count // 2)
    return tally


def tampered_graphs(rng: random.Random, folder: Path, count: int) -> Tally:
    from causerie.graph import Graph

    tally = Tally("tampered graphs")
    place = folder / "graph"
    shutil.copytree(Graph.open("everyday").folder, place)

    def seen() -> object:
        graph = Graph.open(place)
        nodes = [graph.find(word) for word in ("music", "guitar", "dog")]
        known = [node for node in nodes if node is not None]
        return nodes, graph.vectors(known).tolist(), graph.frequencies.of("music")

    expected = seen()
    files = [path for path in place.iterdir() if path.is_file()]
    tamper(rng, tally, files, lambda: seen() == expected, count)
    return tally


def tampered_stores(rng: random.Random, folder: Path, count: int) -> Tally:
    from causerie.dialogue import Dialogue
    from causerie.errors import CauserieWarning
    from causerie.metrics.base import Score
    from causerie.scoring.store import Kept, ScoreStore, digest_of

    tally = Tally("tampered stores")
    items = [Dialogue.from_texts([sentence(rng), sentence(rng)]) for _ in range(200)]
    digests = [digest_of(item) for item in items]
    rows = {d: Kept((Score.of(rng.random()),), 10, 0.1, None) for d in digests}
    path = folder / "scores.sqlite"
    with ScoreStore(path) as store:
        store.put("metric", rows, explain=False)

    def same() -> bool:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CauserieWarning)
                with ScoreStore(path) as store:
                    found = store.find("metric", digests, explain=False, columns=1)
            return all(found[d].scores == rows[d].scores for d in found)
        finally:
            for file in folder.glob("scores.sqlite*"):
                file.unlink()

    tamper(rng, tally, [path], same, count)
    return tally


def tampered_models(rng: random.Random, folder: Path, count: int) -> Tally:
    """Of the model store: its files, and files that do not belong there."""
    import torch

    from causerie.engines.encoder import Encoder
    from causerie.errors import CauserieError
    from causerie.models import Store, load_backbone

    tally = Tally("tampered models")
    place = tiny().make_bert(folder / "models" / "small")
    files = [path for path in place.rglob("*") if path.is_file()]
    entry = {"name": "small", "aliases": ["default"], "kind": "encoder", "licence": "CC0-1.0"} | {
        "files": {f.relative_to(place).as_posix(): _sha256(f) for f in files},
        "size": sum(file.stat().st_size for file in files),
        "summary": "",
        "sources": [],
    }
    registry = folder / "registry.json"
    registry.write_text(json.dumps({"models": [entry]}))

    def seen() -> object:
        store = Store(folder / "models", offline=True, registry=registry)
        kind = {"dtype": torch.float32, "device": torch.device("cpu"), "trainable": False}
        encoder = Encoder(load_backbone(store, "small", "encoder", **kind))
        return encoder.encode([(("do you like music?",),)]).tolist()

    expected = seen()
    for name in ("adapter_config.json", "model-00002.safetensors", "tokenization_small.py"):
        stranger = place / name
        stranger.write_text("{}")
        tally.counts["strangers"] += 1
        try:
            seen()
            tally.fault(f"{name} was let be")
        except CauserieError:
            tally.counts["refused"] += 1
        stranger.unlink()
    tamper(rng, tally, files, lambda: seen() == expected, count)
    return tally


def _sha256(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()


def tampered_journals(rng: random.Random, folder: Path, count: int) -> Tally:
    """What an interrupted run has left is changed: the next one ends with the right bytes."""
    from causerie.progress import ignore
    from causerie.scoring import Inputs, Layout, Plan, Run, Scorer

    class EnoughError(Exception):
        pass

    tally = Tally("tampered journals")
    source = write_jsonl(folder / "in.jsonl", dialogues(rng, 60))
    out, page = folder / "out.jsonl", folder / "out.html"
    journal, kept = folder / "out.jsonl.partial", folder / "kept"

    def made(watch: Callable[[Progress], None] = ignore) -> list[bytes]:
        plan = Plan.of("length,overlap", speaker="all")
        with Run(Scorer(plan), Inputs((str(source),)), Layout(plan), out=out, report=page) as run:
            run.execute(watch)
            run.write()
        return [out.read_bytes(), page.read_bytes()]

    def clear() -> None:
        for path in (out, page):
            path.unlink(missing_ok=True)

    def stop(progress: Progress) -> None:
        if progress.done:
            raise EnoughError

    def count_continued(progress: Progress) -> None:
        tally.counts["went on"] += "continuing" in (progress.note or "")

    def same() -> bool:
        try:
            return made(count_continued) == expected
        finally:
            clear()
            shutil.rmtree(journal, ignore_errors=True)
            shutil.copytree(kept, journal)

    expected = made()
    clear()
    with suppress(EnoughError):
        made(stop)
    shutil.copytree(journal, kept)
    files = [path for path in journal.iterdir() if path.stat().st_size]
    tally.counts["files"] = len(files)
    if not (same() and tally.counts["went on"]):
        tally.fault("a journal that nobody changed was not continued")
    tamper(rng, tally, files, same, count)
    return tally


def tampering(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    quarter = amounts.tamperings // 4
    yield tampered_artifacts(rng, folder, quarter, encoder)
    yield tampered_graphs(rng, folder, quarter)
    yield tampered_stores(rng, folder, quarter)
    yield tampered_models(rng, folder, quarter)
    yield tampered_journals(rng, folder, quarter)
