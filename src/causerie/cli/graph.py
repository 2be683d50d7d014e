"""`causerie graph`: building commonsense graphs and looking into them."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from causerie.cli.options import DataLicence, engine_options_but
from causerie.licences import NOT_STATED

if TYPE_CHECKING:
    from causerie.graph import Graph

graph_app = typer.Typer(
    help="Build commonsense graphs (words and their relations), and look into them.",
    no_args_is_help=True,
)

GraphName = Annotated[str, typer.Option("--graph", "-g", help="Name or folder of a graph.")]
Word = Annotated[str, typer.Argument(metavar="WORD", show_default=False)]


@graph_app.command()
@engine_options_but("backend", "lm", "turn_format", "research")
def build(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the graph.")],
    conceptnet: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads it at run time, on 3.10 too
        typer.Option(help="ConceptNet's assertions dump (.csv, also .gz)."),
    ] = None,
    triples: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help='JSONL of {"head", "rel", "tail", "weight"}; repeat for several.'),
    ] = None,
    wordnet: Annotated[
        bool, typer.Option("--wordnet", help="Use WordNet 3.1, fetched once like a model.")
    ] = False,
    corpus: Annotated[
        Optional[list[Path]],  # noqa: UP045
        typer.Option(help="Dialogues, for words that answer each other; repeat for several files."),
    ] = None,
    spoken: Annotated[
        int, typer.Option(min=0, help="Minimum number of utterances of the corpus with a word.")
    ] = 0,
    language: Annotated[str, typer.Option(help="Language of ConceptNet's words.")] = "en",
    relation: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            help="Only this relation of ConceptNet and triples, such as IsA; repeat for several."
        ),
    ] = None,
    numberbatch: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Vectors: Numberbatch's text file (also .gz) [default: computed]."),
    ] = None,
    vectors: Annotated[
        str,
        typer.Option(
            help="How vectors are computed: by the encoder, or from usage, the words used together."
        ),
    ] = "encoder",
    dimension: Annotated[
        int, typer.Option(min=0, help="Dimension of computed vectors; 0 for none.")
    ] = 64,
    licence: DataLicence = NOT_STATED,
    *,
    settings: Any,
) -> None:
    """Build a graph from one or several sources, which are merged.

    **Examples**

        causerie graph build --conceptnet conceptnet-assertions-5.7.0.csv.gz
        --numberbatch numberbatch-en-19.08.txt.gz --out conceptnet

        causerie graph build --wordnet --corpus chats.jsonl --spoken 5 --out my-graph

        causerie graph build --triples mine.jsonl --dimension 0 --out my-graph
    """
    from causerie.cli.console import Display, say
    from causerie.engines import Engines
    from causerie.training.graph import GraphPlan, build_graph

    recipe = ["causerie", "graph", "build"]
    recipe += ["--conceptnet", conceptnet.name] if conceptnet else []
    recipe += [word for path in triples or [] for word in ("--triples", path.name)]
    recipe += ["--wordnet"] if wordnet else []
    recipe += [word for path in corpus or [] for word in ("--corpus", path.name)]
    recipe += ["--spoken", str(spoken)] if spoken else []
    recipe += ["--language", language] if language != "en" else []
    recipe += [word for name in relation or [] for word in ("--relation", name)]
    recipe += ["--numberbatch", numberbatch.name] if numberbatch else []
    named = settings.encoder != "default"
    recipe += ["--encoder", Path(settings.encoder).name] if named else []
    recipe += ["--vectors", vectors] if vectors != "encoder" else []
    recipe += ["--dimension", str(dimension), "--licence", licence, "--out", out.name]
    plan = GraphPlan(
        out=out,
        conceptnet=conceptnet,
        triples=tuple(triples or ()),
        wordnet=wordnet,
        corpus=tuple(corpus or ()),
        numberbatch=numberbatch,
        vectors=vectors,
        dimension=dimension,
        language=language,
        relations=tuple(relation or ()),
        spoken=spoken,
        licence=licence,
        recipe=shlex.join(recipe),
    )
    with Display() as watch:
        about = build_graph(plan, Engines(settings), watch)
    say(f"wrote {out}: {about.nodes:,} words, {about.edges:,} relations")


@graph_app.command()
def info(
    graph: Annotated[str, typer.Argument(help="Name or folder of a graph.")] = "everyday",
) -> None:
    """Show the size, sources and relations of a graph.

    Example: `causerie graph info everyday`
    """
    from causerie.cli.console import show

    opened = _open(graph)
    about = opened.about
    show(f"{about.nodes:,} words, {about.edges:,} relations")
    for source in about.sources:
        show(f"source: {source.name} ({source.edges:,} relations; {source.licence})")
    show(f"relations: {', '.join(about.relations)}")
    vectors = f"{opened.dimension} numbers a word, {about.vectors}" if opened.dimension else "none"
    show(f"vectors: {vectors}")
    show(f"folder: {opened.folder}")


@graph_app.command()
def path(
    one: Word,
    other: Word,
    graph: GraphName = "everyday",
    cap: Annotated[int, typer.Option(min=1, help="Maximum number of steps.")] = 5,
) -> None:
    """Show a shortest path between two words.

    Exit status 1 if there is none within the cap.

    Example: `causerie graph path dog holiday`
    """
    from causerie.cli.console import show
    from causerie.graph import Hops

    opened = _open(graph)
    found = Hops(opened, cap).path(_node(opened, one), _node(opened, other))
    if found is None:
        show(f"no path of at most {cap} steps")
        raise typer.Exit(1)
    words = [opened.word(node) for node in found]
    for node, word, following in zip(found, words, words[1:], strict=False):
        steps = [step for step in opened.neighbours(node) if step.word == following]
        labels = ", ".join(dict.fromkeys(_label(step.relation, step.backwards) for step in steps))
        show(f"{word} {labels} {following}")
    show(f"{len(words) - 1} steps")


@graph_app.command()
def neighbours(
    word: Word,
    graph: GraphName = "everyday",
    count: Annotated[int, typer.Option(min=1, help="Maximum number shown per source.")] = 20,
) -> None:
    """List the words directly related to a word, the strongest first.

    Example: `causerie graph neighbours dog --count 5`
    """
    from causerie.cli.console import show

    opened = _open(graph)
    found = opened.neighbours(_node(opened, word))
    for source in opened.about.sources:
        ours = [one for one in found if one.source == source.name]
        for one in ours[:count]:
            label = _label(one.relation, one.backwards)
            show(f"{one.weight:6.2f}  {label} {one.word}  ({source.name})")
        if len(ours) > count:
            show(f"        and {len(ours) - count:,} more of {source.name}")


def _open(name: str) -> Graph:
    from causerie.graph import Graph

    return Graph.open(name)


def _node(graph: Graph, word: str) -> int:
    from causerie.errors import CauserieError

    node = graph.find(word.strip().lower())
    if node is None:
        raise CauserieError(f"{word!r} is not in the graph: its words are lemmas (mouse, not mice)")
    return node


def _label(relation: str, backwards: bool) -> str:
    return f"<-{relation}-" if backwards else f"-{relation}->"
