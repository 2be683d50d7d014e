"""`causerie annotate`: projects in which people mark causes and judge responses in the browser."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli import options
from causerie.cli.serve import check_installed
from causerie.errors import CauserieError

if TYPE_CHECKING:
    from causerie.annotation.store import Store

annotate_app = typer.Typer(
    help="Mark what causes a response, and judge responses, as a team in the browser.",
    no_args_is_help=True,
)

Location = Annotated[
    str,
    typer.Argument(
        metavar="PROJECT",
        help="The file of the project, or a database postgresql://USER:PASSWORD@HOST/NAME.",
        show_default=False,
    ),
]
Name = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--project", help="Name of the project, if a database has several."),
]
Address = Annotated[str, typer.Option(help="Address of the server, for the links.")]
_HERE = "http://127.0.0.1:8765"


@annotate_app.command()
def init(
    location: Location,
    files: Annotated[
        list[Path], typer.Argument(help="Conversations or responses.", show_default=False)
    ],
    people: Annotated[
        str, typer.Option(help="Names of the annotators, separated by commas.", show_default=False)
    ],
    task: Annotated[
        str, typer.Option(help="causes, pairs, replies, dialogues or labels.")
    ] = "causes",
    names: Annotated[
        str,
        typer.Option(help="Dimensions of a judgement, or labels, separated by commas."),
    ] = "",
    scale: Annotated[int, typer.Option(help="Judgements are numbers from 1 to this.")] = 5,
    speaker: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="Only responses by this speaker or role."),
    ] = None,
    sample: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=1, help="Number of conversations, drawn at random [all]."),
    ] = None,
    annotators: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            min=1, help="Annotators per item of the overlap [default: 2; for judgements 3]."
        ),
    ] = None,
    overlap: Annotated[
        Optional[float],  # noqa: UP045
        typer.Option(
            min=0,
            max=1,
            help="Share of items with several annotators [default: 0.25; for judgements 1].",
        ),
    ] = None,
    gold: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Annotated items on which everybody practises first."),
    ] = None,
    guideline: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Text for the annotators [default: the shipped one, with examples]."),
    ] = None,
    project: Name = None,
    address: Address = _HERE,
    seed: options.Seed = 0,
) -> None:
    """Create a project, and a secret link for everybody.

    Example: `causerie annotate init study.db dialogues.jsonl --people ann,ben,cleo --sample 95`
    """
    check_installed()
    from causerie.annotation.founding import found, read_gold, read_items
    from causerie.annotation.project import Settings
    from causerie.annotation.tasks import Task
    from causerie.cli.console import Display, say

    asked = Task.of(task, [n.strip() for n in names.split(",")] if names else (), scale)
    several = annotators or (2 if asked.is_marked else 3)
    shared = overlap if overlap is not None else (0.25 if asked.is_marked else 1.0)
    text = guideline.read_text("utf-8") if guideline else ""
    settings = Settings(asked, several, shared, seed, text)
    practice = read_gold(gold, asked) if gold else []
    with Display() as watch:
        items = read_items(
            files, asked.kind, speaker=speaker, sample=sample, seed=seed, watch=watch
        )
    name = project or (Path(location).stem if "://" not in location else "project")
    with _opened(location, create=True) as store:
        made = found(store, name, settings, items, people.split(","), practice)
    say(f"project {name}: {made.items:,} items, {made.practice:,} to practise, "
        f"{made.assigned:,} assignments")  # fmt: skip
    say("these links are shown only once; whoever has a link can act as that person:")
    _show_links(made.tokens, address)
    watch.end()


@annotate_app.command()
def serve(
    location: Location,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for a free one.")] = 8765,
    token_file: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="File with the owner's token [default: a new one every time]."),
    ] = None,
    allow_host: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(metavar="NAME", help="Additional host name of the server."),
    ] = None,
    project: Name = None,
    training: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Folder of a training whose learning curve the lead's page shows."),
    ] = None,
    open_: Annotated[bool, typer.Option("--open", help="Open the lead's page.")] = False,
) -> None:
    """Open the project in the browser.

    Everybody needs a link, even on this machine.
    """
    check_installed()
    from causerie.cli.console import say
    from causerie.server.annotate import annotation_room
    from causerie.server.app import Config
    from causerie.server.safety import new_token
    from causerie.server.serve import serve, token_from

    with _opened(location) as store:
        room = annotation_room(store, store.project(project), training=training)
        token = token_from(token_file) if token_file else new_token()
        config = Config((room,), host, port, token, tuple(allow_host or ()))

        def ready(address: str) -> None:
            say(f"the project is at {address}; the lead's page, for you alone:")
            typer.echo(f"{address}/enter#{token}")
            sys.stdout.flush()
            say("stop it with Ctrl-C")
            if open_:
                import webbrowser

                webbrowser.open(f"{address}/enter#{token}")

        serve(config, ready)


@annotate_app.command()
def status(location: Location, project: Name = None) -> None:
    """Show everybody's progress and quality."""
    check_installed()
    from causerie.annotation.report import status_line, status_table
    from causerie.cli.console import show
    from causerie.render.tables import markdown_table

    with _opened(location) as store:
        now = store.snapshot(store.project(project))
    show(f"{markdown_table(status_table(now))}\n{status_line(now)}")


@annotate_app.command()
def agreement(
    location: Location,
    project: Name = None,
    out: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--out", "-o", help="Also write the result: .md, .tex, .csv or .json."),
    ] = None,
) -> None:
    """Show agreement in the first round: kappa, alpha, clause-level F1."""
    check_installed()
    from causerie.annotation.agreement import agreement
    from causerie.annotation.report import agreement_tables
    from causerie.cli.console import show
    from causerie.render.tables import check_suffix, markdown_table, write_tables

    if out:
        check_suffix(out)
    with _opened(location) as store:
        tables = agreement_tables(agreement(store.snapshot(store.project(project))))
    if not tables:
        raise CauserieError("no item has been finished by two annotators in the first round yet")
    show("\n".join(markdown_table(table) for table in tables))
    if out:
        write_tables(out, *tables)


@annotate_app.command()
def export(
    location: Location,
    format_: Annotated[
        str,
        typer.Option(
            "--format",
            help="jsonl, cgdialog, labelstudio, doccano, judged, brat (a folder) or log.",
        ),
    ] = "jsonl",
    out: Annotated[
        Path, typer.Option("--out", "-o", help="File to write; - for standard output.")
    ] = Path("-"),
    project: Name = None,
) -> None:
    """Write all work to a file, as a snapshot; people can continue working.

    Example: `causerie annotate export study.db --out causes.jsonl`, then
    `causerie train causalscore --annotations causes.jsonl`.
    """
    check_installed()
    from causerie.annotation.formats import check_format, export, export_brat
    from causerie.cli.console import say
    from causerie.io import atomic_write

    with _opened(location) as store:
        now = store.snapshot(store.project(project))
    check_format(now.task, format_)
    if format_ == "brat":
        if str(out) == "-":
            raise CauserieError("brat has two files per item: name a folder with --out")
        say(f"{out}: {export_brat(now, out):,} items")
        return
    if str(out) == "-":
        for part in export(now, format_):
            sys.stdout.write(part)
        return
    with atomic_write(out) as file:
        for part in export(now, format_):
            file.write(part.encode())
    say(f"wrote {out}")


@annotate_app.command("import")
def import_(
    location: Location,
    files: Annotated[
        list[Path],
        typer.Argument(
            help="Annotations: causerie's own, CGDIALOG+, Label Studio, doccano.",
            show_default=False,
        ),
    ],
    project: Name = None,
) -> None:
    """Add annotated items with their annotations; existing items are kept.

    Exit status 1 means that something could not be placed or read; it is listed.
    """
    check_installed()
    from causerie.annotation.assignment import first_round
    from causerie.annotation.formats import read_worked
    from causerie.annotation.work import Worked, add_works
    from causerie.cli.console import Display, say

    problems = 0
    with _opened(location) as store, Display() as watch:
        number = store.project(project)
        task = store.snapshot(number, person=0).task
        for path in files:
            good: list[Worked] = []
            for one in read_worked(path, task):
                if isinstance(one, Worked):
                    good.append(one)
                else:
                    problems += 1
                    watch.note(f"skipped {one}")
            added = add_works(store, number, good)
            problems += len(added.problems)
            for problem in added.problems:
                watch.note(f"{path.name}: {problem}")
            say(f"{path}: {added.items:,} new items, {added.works:,} annotations")
        store.assign(number, first_round)
    if problems:
        raise typer.Exit(1)


@annotate_app.command()
def invite(
    location: Location,
    people: Annotated[list[str], typer.Argument(metavar="NAME...", show_default=False)],
    project: Name = None,
    address: Address = _HERE,
) -> None:
    """Add annotators, or replace the links of existing ones."""
    check_installed()
    from causerie.annotation.assignment import first_round
    from causerie.annotation.founding import LEAD

    with _opened(location) as store:
        number = store.project(project)
        tokens = {
            name: store.add_person(number, name, "lead" if name == LEAD else "annotator") or ""
            for name in people
        }
        store.assign(number, first_round)
    _show_links(tokens, address)


@annotate_app.command()
def revoke(
    location: Location,
    people: Annotated[list[str], typer.Argument(metavar="NAME...", show_default=False)],
    project: Name = None,
) -> None:
    """Revoke links at once; finished work is kept, open work goes to others."""
    check_installed()
    from causerie.annotation.assignment import first_round

    with _opened(location) as store:
        number = store.project(project)
        for name in people:
            store.revoke(number, name)
        store.assign(number, first_round)


@annotate_app.command()
def review(
    location: Location,
    reviewers: Annotated[
        str,
        typer.Option(
            help="Names of the reviewers, separated by commas [default: the better half]."
        ),
    ] = "",
    project: Name = None,
) -> None:
    """Start or continue the second round, in which nobody reviews their own work."""
    check_installed()
    from causerie.annotation.assignment import reviewers_of, second_round
    from causerie.cli.console import say

    names = [name.strip() for name in reviewers.split(",") if name.strip()]
    with _opened(location) as store:
        assigned = store.assign(
            store.project(project), lambda now: second_round(now, reviewers_of(now, names))
        )
    say(f"{assigned:,} items were given to reviewers")


@annotate_app.command()
@options.engine_options
def select(
    location: Location,
    metric: Annotated[
        str,
        typer.Option("--metric", "-m", help="causalscore, or the folder of one of your own."),
    ] = "causalscore",
    project: Name = None,
    *,
    settings: Any,
) -> None:
    """Active selection: items about which causalscore is least certain come first from now on."""
    check_installed()
    from causerie.annotation.selection import priorities
    from causerie.cli.console import Display, say
    from causerie.engines import Engines
    from causerie.metrics.causalscore import CausalScore
    from causerie.scoring import Plan

    (chosen,) = Plan.of({"causalscore": metric}).metrics.values()
    if not isinstance(chosen, CausalScore):
        raise CauserieError(f"{metric} does not find causes: give causalscore or an artifact of it")
    with _opened(location) as store, Display():
        number = store.project(project)
        found = priorities(store.snapshot(number), chosen, Engines(settings))
        store.prioritise(number, found)
    say(f"{len(found):,} items that nobody has started are in a new order")


@contextmanager
def _opened(location: str, *, create: bool = False) -> Iterator[Store]:
    from causerie.annotation.store import Store

    store = Store.open(location, create=create)
    try:
        yield store
    finally:
        store.close()


def _show_links(tokens: dict[str, str], address: str) -> None:
    """Write secret links to standard output, so that they can be saved, without masking."""
    from causerie.progress import printable

    for name, token in tokens.items():
        typer.echo(f"{printable(name)}\t{address.rstrip('/')}/enter#{token}")
