"""`causerie bench rank`: does a metric find the human response among random ones."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import metric_variant


def rank(
    data: Annotated[
        list[Path],
        typer.Option(
            help="Dialogues between people; repeat for several files.", show_default=False
        ),
    ],
    metrics: Annotated[
        str,
        typer.Option(
            "--metrics",
            "-m",
            help="Names or folders of artifacts, separated by commas, each with options or not: "
            "density:distance=classifier.",
        ),
    ] = "density,density:distance=classifier,cosine,overlap,length",
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="The folder for ranking.md and ranking.svg."),
    ] = None,
    max_items: Annotated[int, typer.Option(min=1, help="At most so many exchanges.")] = 1000,
    seed: options.Seed = 0,
    scores: options.ScoresFile = None,
    encoder: options.Encoder = "default",
    lm: options.LanguageModel = "default",
    turn_format: options.TurnFormat = None,
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Whether metrics find the human response among random ones: no judgements needed.

    Example: `causerie bench rank --data chats.jsonl --metrics density,cosine,my-density --out here`
    """
    from causerie.bench.ranking import ranking_markdown, ranking_picture, run_ranking
    from causerie.bench.scores import ScoreStore
    from causerie.cli.console import Display, console, plain
    from causerie.engines import Engines, Settings
    from causerie.io import write_whole
    from causerie.metrics import load
    from causerie.training.corpus import Corpus

    engines = Engines(
        Settings(encoder, lm, turn_format, device, dtype, threads, models_dir, offline)
    )
    chosen = {}
    for variant in filter(None, map(str.strip, metrics.split(","))):
        name, assigned = metric_variant(variant)
        short = variant.replace(name, Path(name).name, 1)
        chosen[variant if short in chosen else short] = load(name, engines, **assigned)
    corpus = Corpus.read(data, lambda record: console.print(plain(f"skipped {record}")))
    with ScoreStore(scores) as store, Display() as watch:
        result = run_ranking(chosen, corpus, store, max_items=max_items, seed=seed, watch=watch)
    typer.echo(ranking_markdown(result))
    if out:
        write_whole(out / "ranking.md", ranking_markdown(result))
        write_whole(out / "ranking.svg", ranking_picture(result))
        console.print(plain(f"wrote {out / 'ranking.md'} and {out / 'ranking.svg'}"))
