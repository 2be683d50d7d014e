"""How much the follow-up metrics measure length, and what that costs: both averages compared.

    python benchmarks/followups_length.py DATA WORK [LM]

DATA has `corpora` (validation splits of `chitchat` and `selfdialogue`) and `rated` (Ji et al.). On
exchanges of people: Spearman's rho of every dimension with the number of tokens of history and
response. On conversations with bots: rho of `overall` with the rating of the one who talked, and of
both with the number of tokens. No judged set is used, so the choice of the default average may rest
on it. LM is a language model, by default the one that comes with causerie before it was tuned.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from causerie.dialogue import Dialogue, Exchange
from causerie.engines import Engines, Settings
from causerie.metrics import load_metric
from causerie.metrics.base import Level
from causerie.metrics.followups.hypotheses import OVERALL
from causerie.render.tables import Table, markdown_table
from causerie.stats import spearman
from causerie.training.corpus import Corpus, sample, sample_evenly

PEOPLE = ("chitchat.valid.jsonl.gz", "selfdialogue.valid.jsonl.gz")
RATED = "ji2022_dialogue_eval.jsonl.gz"
FAILED = {"quality_control": frozenset({"fail"}), "bot": frozenset({"qc"})}
METRICS = ("fed", "cpmi")
AVERAGES = ("sequence", "hypothesis")
EXCHANGES, DIALOGUES = 48, 60

Rows: TypeAlias = dict[str, list[float]]
"""By name, a number for each average."""


def main() -> None:
    data, work, *lm = sys.argv[1:]
    engines = Engines(Settings(lm=lm[0] if lm else "default-lm", threads=1))
    people = Corpus.read([Path(data, "corpora", name) for name in PEOPLE])
    by_source = [[e for d in source for e in d.exchanges()] for source in people.sources]
    exchanges = sample_evenly(by_source, EXCHANGES, seed=0)
    rated = Corpus.read([Path(data, "rated", RATED)], without=FAILED)
    _, held_out = rated.split(seed=0)
    dialogues = sample(held_out.dialogues, DIALOGUES, seed=0)
    parts: list[str] = []
    for metric in METRICS:
        found = {
            f"{metric}, turns of people (n={len(exchanges)})": lengths(metric, exchanges, engines),
            f"{metric}, dialogues with bots (n={len(dialogues)})": ratings(
                metric, dialogues, engines
            ),
        }
        parts += [f"{title}\n\n{table(rows)}" for title, rows in found.items()]
        text = "\n\n".join(parts) + "\n"
        Path(work, "followups-length.md").write_text(text, encoding="utf-8")


def lengths(metric: str, exchanges: Sequence[Exchange], engines: Engines) -> Rows:
    """Rho of every dimension with the tokens before the hypothesis."""
    tokens = np.array([tokens_before(e, engines) for e in exchanges])
    rows: Rows = {}
    for average in AVERAGES:
        for name, values in scores(metric, average, "turn", exchanges, engines).items():
            rows.setdefault(name, []).append(rho(values, tokens))
    print(table(rows), flush=True)
    return rows


def ratings(metric: str, dialogues: Sequence[Dialogue], engines: Engines) -> Rows:
    """Rho of the mean z-score with ratings and with tokens; and of tokens with ratings."""
    last = [Exchange(d, d.turns_by("system")[-1]) for d in dialogues]
    tokens = np.array([tokens_before(e, engines) for e in last])
    given = np.array([d.rating for d in dialogues], dtype=np.float64)
    rows: Rows = {"with the rating": [], "with tokens": []}
    for average in AVERAGES:
        columns = scores(metric, average, "dialogue", last, engines)
        zs = [(v - v.mean()) / v.std() for name, v in columns.items() if name != OVERALL]
        rows["with the rating"].append(rho(np.mean(zs, axis=0), given))
        rows["with tokens"].append(rho(np.mean(zs, axis=0), tokens))
    rows["tokens with the rating"] = [rho(tokens, given)] * len(AVERAGES)
    print(table(rows), flush=True)
    return rows


def scores(
    metric: str, average: str, level: Level, exchanges: Sequence[Exchange], engines: Engines
) -> dict[str, NDArray[np.float64]]:
    made = load_metric(metric, average=average)
    found: list[NDArray[np.float64]] = []
    for number, exchange in enumerate(exchanges):
        upto = Dialogue(exchange.dialogue.id, exchange.dialogue.turns[: exchange.turn + 1])
        (row,) = (
            made.score_exchanges([exchange], engines)
            if level == "turn"
            else made.score_dialogues([upto], engines, speaker=exchange.response.speaker)
        )
        found.append(np.array([np.nan if s.value is None else s.value for s in row]))
        if number % 20 == 0:
            print(f"{metric}, {average}: {number} of {len(exchanges)}", file=sys.stderr)
    names = [column.name for column in made.columns(level)]
    return dict(zip(names, np.array(found).T, strict=True))


def tokens_before(exchange: Exchange, engines: Engines) -> int:
    turns = (*exchange.context, exchange.response)
    form = engines.likelihood.format
    return sum(len(form.segment(exchange.role_of(t), t.text).tokens) for t in turns)


def rho(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    (found,) = spearman(one[None], other)
    return np.nan if found.value is None else found.value


def table(rows: Rows) -> str:
    return markdown_table(Table(["", *AVERAGES], [[name, *v] for name, v in rows.items()]))


if __name__ == "__main__":
    main()
