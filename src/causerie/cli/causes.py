"""`causerie bench causes`: does causalscore find annotated causes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

from causerie.cli import options
from causerie.cli.assignments import metric_variant
from causerie.errors import CauserieError


def causes(
    annotations: Annotated[
        list[Path],
        typer.Option(
            help="Causal annotations that were not trained on; repeat for several files.",
            show_default=False,
        ),
    ],
    metric: Annotated[
        str,
        typer.Option(
            "--metric", "-m", help="causalscore or the folder of an artifact: here:history=8."
        ),
    ] = "causalscore",
    test: Annotated[
        Optional[str],  # noqa: UP045 - typer reads it at run time, on 3.10 too
        typer.Option(help="Also a test without learning: fisherz, kci or rcit (causal-learn)."),
    ] = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write it: .md, .tex, .csv or .json."),
    ] = None,
    seed: options.Seed = 0,
    encoder: options.Encoder = "default",
    device: options.Device = "auto",
    dtype: options.Dtype = "float32",
    threads: options.Threads = None,
    models_dir: options.ModelsDir = None,
    offline: options.Offline = False,
) -> None:
    """Both classifiers of causalscore on annotated causes, beside trivial answers.

    Example: `causerie bench causes --annotations dream.test.jsonl --metric my-causalscore`
    """
    from causerie.bench.causes import causes_markdown, causes_tables, run_causes
    from causerie.cli.console import Display, console, plain, say
    from causerie.engines import Engines, Settings
    from causerie.metrics import load
    from causerie.metrics.causalscore import CausalScore
    from causerie.metrics.causalscore.discovery import DiscoveryTest
    from causerie.render.tables import check_suffix, write_tables
    from causerie.training.corpus import AnnotatedCorpus

    if out:
        check_suffix(out)
    engines = Engines(
        Settings(
            encoder=encoder,
            device=device,
            dtype=dtype,
            threads=threads,
            models_dir=models_dir,
            offline=offline,
        )
    )
    name, assigned = metric_variant(metric)
    loaded = load(name, engines, **assigned)
    if not isinstance(loaded, CausalScore):
        raise CauserieError(f"{name} does not say what causes a response: causalscore does")
    corpus = AnnotatedCorpus.read(annotations, say)
    names = [path.name.split(".")[0] for path in annotations]
    with Display() as watch:
        result = run_causes(
            loaded,
            corpus,
            names,
            test=DiscoveryTest(engines.encoder, test) if test else None,
            seed=seed,
            watch=watch,
        )
    typer.echo(causes_markdown(result))
    if out:
        write_tables(out, *causes_tables(result), text=causes_markdown(result))
        console.print(plain(f"wrote {out}"))
