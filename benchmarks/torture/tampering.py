"""Tampering: what was changed is refused, or the scores are the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from common import Amounts, Tally, sentence


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
        content = json.loads(before)
        if isinstance(content, dict) and content:
            odd = [None, [], {}, "x", -1, 10**30, "../../etc/passwd", [[[]]], True]
            content[rng.choice(sorted(content))] = rng.choice(odd)
            made = bytearray(json.dumps(content).encode())
    path.write_bytes(bytes(made))
    return path, before, kind


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
    import shutil

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
    import shutil

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
    import warnings

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


def tampering(rng: random.Random, folder: Path, amounts: Amounts, encoder: str) -> Iterator[Tally]:
    third = amounts.tamperings // 3
    yield tampered_artifacts(rng, folder, amounts.tamperings - 2 * third, encoder)
    yield tampered_graphs(rng, folder, third)
    yield tampered_stores(rng, folder, third)
