"""Figures, statistics and case studies of the papers, with our numbers.

    python benchmarks/papers_figures.py DATA OUT [--research]

DATA has `causal` and `judged`. OUT gets the pictures and `figures.md`:

- GRADE, figure 3: human scores of every system on ConvAI2, with `grade` brought to the same scale;
- GRADE, figure 5: single responses, human score beside metrics brought to 1 to 5;
- DEnsity, table 3: four responses, scores brought to 0 to 1 and the share of responses below;
- CausalScore, table 1: statistics of CGDIALOG+;
- CausalScore, figure 4: how `causalscore` is distributed over the responses of each set;
- CausalScore, tables 4 and 8 to 12: the case studies of `causalscore_cases.csv`, which has what is
  printed and digests of the last turn and the response, no texts.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from causerie.bench.judgement import judgement_of
from causerie.bench.papers.protocols import apply, protocol
from causerie.bench.sets.catalogue import find_set
from causerie.bench.sets.judged import JudgedSet, read_judged
from causerie.bench.sets.units import Units, units_of
from causerie.dialogue import Exchange
from causerie.engines import Settings
from causerie.render.svg import BLUE, RED, Scale, disc, label, line, outline, picture, polyline
from causerie.render.tables import Table, markdown_table
from causerie.scoring import Plan, Scorer
from causerie.stats import spearman
from causerie.text import words
from causerie.training.corpus import AnnotatedCorpus

Floats = NDArray[np.float64]
DOMAINS = ("esconv", "msc", "dream")
SPLITS = ("train", "valid", "test")
PRINTED: Mapping[str, Sequence[str]] = {
    "history-response pairs": ("694", "800", "950"),
    "utterances": ("2301", "3807", "3862"),
    "direct causes": ("1347", "1525", "1519"),
    "words of a direct cause": ("24.01 (σ 16.61)", "22.22 (σ 13.79)", "16.67 (σ 11.83)"),
}
"""Table 1 of CausalScore."""
SAMPLES: Mapping[str, Mapping[str, str]] = {
    "dailydialog-zhao-181": {
        "human": "0.25 (0.26)",
        "density": "0.39 (0.32)",
        "bleu": "1.00 (1.00)",
    },
    "dailydialog-zhao-717": {
        "human": "0.08 (0.14)",
        "density": "0.11 (0.12)",
        "bleu": "0.00 (0.00)",
    },
    "dailydialog-zhao-732": {
        "human": "1.00 (0.86)",
        "density": "0.95 (0.73)",
        "bleu": "0.00 (0.59)",
    },
    "dailydialog-zhao-884": {
        "human": "1.00 (0.86)",
        "density": "0.98 (0.82)",
        "bleu": "0.00 (0.72)",
    },
}
"""Table 3 of DEnsity: normalised scores, rank scores in brackets."""
GRADED = "grade_convai2"
TITLE = """# Figures, statistics and case studies of the papers

Made by `make figures DATA=folder`."""
CASES = Path(__file__).with_name("causalscore_cases.csv")
WIDTH, HEIGHT, MARGIN, BINS = 640, 130, 24, 20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--research", action="store_true", help="the papers' own data behind both")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    settings = Settings(threads=1, research=options.research)
    parts = [
        grade_pictures(options.data, options.out, settings),
        samples(options.data, settings),
        causes(options.data),
        distributions(options.data, options.out, settings),
        cases(options.data, settings),
    ]
    (options.out / "figures.md").write_text("\n\n".join([TITLE, *parts]) + "\n", encoding="utf-8")


def scores_of(metrics: str, units: Units, settings: Settings) -> dict[str, Floats]:
    """The columns of some metrics."""
    plan = Plan.of(metrics, settings=settings, speaker="all")
    batch = Scorer(plan).score_all(units.items)
    return {name: batch.values(name) for name in plan.columns}


def rescaled(values: Floats, human: Floats) -> Floats:
    """From 1 to 5, the worst and the best of the human scores' range, as in the paper's figure."""
    low, high = np.nanmin(values), np.nanmax(values)
    found: Floats = 1 + 4 * (values - low) / ((high - low) or 1.0)
    assert 1 <= np.nanmin(human) <= np.nanmax(human) <= 5
    return found


def grade_pictures(data: Path, out: Path, settings: Settings) -> str:
    """Figures 3 and 5 of GRADE."""
    judged = read_judged(find_set(GRADED, data))
    units = units_of(judged)
    human = judgement_of(judged, units, judged.dimensions[0]).points
    scores = scores_of("grade,cosine,rouge", units, settings)
    shown = {name: rescaled(values, human) for name, values in scores.items()}
    systems = np.array(units.systems)
    names = sorted(set(systems))
    by_system = [
        histograms(
            f"{system}: human (mean {human[systems == system].mean():.2f}) and "
            f"grade (mean {shown['grade'][systems == system].mean():.2f}), both 1 to 5",
            [human[systems == system], shown["grade"][systems == system]],
            (1, 5),
            HEIGHT * number,
        )
        for number, system in enumerate(names)
    ]
    save(out / "grade-by-system.svg", picture(WIDTH, HEIGHT * len(names), by_system))
    save(out / "grade-items.svg", scatter(human, shown["grade"]))
    gap = shown["grade"] - human
    order = np.argsort(gap)
    places = [*order[:3], *np.argsort(np.abs(gap))[:3], *order[-3:]]
    rows = [
        [units.ids[i], units.systems[i], human[i], *(shown[n][i] for n in shown)] for i in places
    ]
    table = markdown_table(Table(["response", "system", "human", *shown], rows))
    return (
        "## GRADE, figures 3 and 5\n\n![Human scores and grade by system](grade-by-system.svg)\n\n"
        f"![Single responses](grade-items.svg)\n\nThe {len(human)} responses of `{GRADED}`, "
        "metrics brought to 1 to 5 (blue: human, red: `grade`). Where `grade` is furthest below "
        "the human score, nearest to it "
        f"and furthest above:\n\n{table}"
    )


def histograms(title: str, both: Sequence[Floats], ends: tuple[float, float], top: float) -> str:
    """Two distributions on one scale."""
    edges = np.linspace(*ends, BINS + 1)
    counts = [np.histogram(np.clip(one, *ends), edges)[0].tolist() for one in both]
    tallest = max(max(one) for one in counts)
    parts = [label(MARGIN, 14, title)]
    for colour, one in zip((BLUE, RED), counts, strict=False):
        path = outline(one, tallest, left=MARGIN, right=WIDTH - MARGIN, top=22, floor=HEIGHT - 22)
        parts.append(f'<path fill="{colour}" fill-opacity="0.55" d="{path}"/>')
    parts.append(label(MARGIN, HEIGHT - 8, f"{ends[0]:g}"))
    parts.append(label(WIDTH - MARGIN, HEIGHT - 8, f"{ends[1]:g}", anchor="end"))
    return f'<g transform="translate(0 {top})">{"".join(parts)}</g>'


def scatter(human: Floats, metric: Floats) -> str:
    """Every response: human score to the right, metric upwards."""
    size = 420
    x, y = Scale(1, 5, 44, size - 16), Scale(1, 5, size - 36, 16)
    parts = [line(x(1), y(1), x(5), y(5), thick=1)]
    parts += [disc(x(h), y(m), colour=BLUE, radius=2) for h, m in zip(human, metric, strict=True)]
    for number in range(1, 6):
        parts.append(label(x(number), size - 20, str(number), anchor="middle"))
        parts.append(label(30, y(number) + 4, str(number), anchor="end"))
    parts.append(label(size / 2, size - 4, "human score", anchor="middle"))
    parts.append(label(48, 12, "grade, brought to 1 to 5"))
    return picture(size, size, parts)


def samples(data: Path, settings: Settings) -> str:
    """Table 3 of DEnsity."""
    recipe = protocol("density/dailydialog-zhao")
    judged = apply(recipe, read_judged(find_set(recipe.set, data)))
    units = units_of(judged)
    found = {
        "human": judgement_of(judged, units, recipe.dimension).points,
        **scores_of("density,bleu:order=2", units, settings),
    }
    rows = []
    for name, printed in SAMPLES.items():
        place = units.ids.index(name)
        cells = []
        for column, text in printed.items():
            values = found[column]
            share = (values[place] - values.min()) / (values.max() - values.min())
            below = (values < values[place]).mean()
            cells.append(f"{text} / {share:.2f} ({below:.2f})")
        rows.append([name, *cells])
    return (
        "## DEnsity, table 3\n\nEach cell: printed / ours; the score brought to 0 to 1 and, in "
        f"brackets, the share of the {len(units)} responses that score less.\n\n"
        + markdown_table(Table(["response", *next(iter(SAMPLES.values()))], rows))
    )


def causes(data: Path) -> str:
    """Table 1 of CausalScore."""
    shares_of = ("the last turn is a cause", "the one before it is a cause")
    found: dict[str, list[str]] = {name: [] for name in (*PRINTED, *shares_of)}
    for domain in DOMAINS:
        files = [data / "causal" / f"{domain}.{split}.jsonl.gz" for split in SPLITS]
        some = AnnotatedCorpus.read(files).annotations
        said = [one.exchange.context[place].text for one in some for place in one.causes]
        lengths = [len(words(text)) for text in said]
        dialogues = {one.conversation: one for one in sorted(some, key=lambda a: a.exchange.turn)}
        turns = sum(one.exchange.turn + 1 for one in dialogues.values())
        shares = [
            fmean(
                one.exchange.turn - back in one.causes for one in some if one.exchange.turn >= back
            )
            for back in (1, 2)
        ]
        values = [
            str(len(some)),
            str(turns),
            str(len(said)),
            f"{fmean(lengths):.2f} (σ {np.std(lengths):.2f})",
            *(f"{share:.0%}" for share in shares),
        ]
        for own, value in zip(found.values(), values, strict=True):
            own.append(value)
    rows = [
        [name, *(f"{p} / {o}" for p, o in zip(PRINTED.get(name, ("–",) * 3), own, strict=True))]
        for name, own in found.items()
    ]
    return "## CausalScore, table 1\n\nEach cell: printed / ours.\n\n" + markdown_table(
        Table(["items", "ESConv", "MSC", "DREAM"], rows)
    )


def distributions(data: Path, out: Path, settings: Settings) -> str:
    """Figure 4 of CausalScore: smoothed by a Gaussian kernel, as in the paper."""
    points = np.linspace(0, 1, 201)
    x = Scale(0, 1, MARGIN, WIDTH - MARGIN)
    colours = {"dream": BLUE, "esconv": RED, "msc": "#228833"}
    lines, rows, tallest = [], [], 0.0
    curves = {}
    for domain in colours:
        units = units_of(read_judged(find_set(f"pairwise_{domain}", data)))
        values = scores_of("causalscore", units, settings)["causalscore"]
        values = values[~np.isnan(values)]
        width = max(1e-3, 1.06 * values.std() * len(values) ** -0.2)
        kernel = np.exp(-(((points[:, None] - values) / width) ** 2) / 2)
        curves[domain] = kernel.sum(1) / (len(values) * width * np.sqrt(2 * np.pi))
        tallest = max(tallest, curves[domain].max())
        counts, _ = np.histogram(values, np.linspace(0, 1, 11))
        rows.append([domain, *(f"{share:.0%}" for share in counts / len(values))])
    y = Scale(0, tallest, 220, 20)
    for number, (domain, curve) in enumerate(curves.items()):
        ends = [(x(p), y(c)) for p, c in zip(points, curve, strict=True)]
        lines.append(polyline(ends, colours[domain]))
        lines.append(label(MARGIN + 80 * number, 14, domain, colour=colours[domain]))
    lines += [label(MARGIN, 240, "0"), label(WIDTH - MARGIN, 240, "1", anchor="end")]
    save(out / "causalscore-distribution.svg", picture(WIDTH, 250, lines))
    tenths = [f"{low:.1f}-{low + 0.1:.1f}" for low in np.linspace(0, 0.9, 10)]
    table = markdown_table(Table(["set", *tenths], rows))
    return (
        "## CausalScore, figure 4\n\n![Distributions of causalscore](causalscore-distribution.svg)"
        f"\n\n{table}"
    )


def cases(data: Path, settings: Settings) -> str:
    """Tables 4 and 8 to 12 of CausalScore: printed numbers, votes of the file, our score."""
    with CASES.open(encoding="utf-8", newline="") as file:
        printed = {row["sha256"]: row for row in csv.DictReader(file)}
    rows, ours = [], []
    for name in dict.fromkeys(row["set"] for row in printed.values()):
        judged: JudgedSet = read_judged(find_set(name, data))
        units = units_of(judged)
        points = judgement_of(judged, units, "relevance").points
        values = scores_of("causalscore", units, settings)["causalscore"]
        for item, point, value in zip(units.items, points, values, strict=True):
            row = printed.get(digest(item)) if isinstance(item, Exchange) else None
            if row is None:
                continue
            rows.append(
                [row["table"], row["system"], row["human"], row["causalscore"], point, value]
            )
            ours.append((float(row["human"]), float(row["causalscore"]), point, value))
    rows.sort(key=lambda row: int(str(row[0])))
    columns = np.array(ours).T
    names = ("printed CausalScore", "votes in the file", "our causalscore")
    said = [
        f"{name} {spearman(columns[place], columns[0])[0].value:.2f}"
        for place, name in enumerate(names, 1)
    ]
    heads = ["table", "system", "human", "CausalScore", "share of votes in the file", "ours"]
    return (
        f"## CausalScore, case studies\n\nOf the {len(rows)} printed responses; Spearman's rho "
        f"with the printed human totals: {', '.join(said)}.\n\n{markdown_table(Table(heads, rows))}"
    )


def digest(exchange: Exchange) -> str:
    """Of the last turn and the response, by which a printed example is known."""
    text = "\n".join((exchange.context[-1].text, exchange.response.text))
    return hashlib.sha256(text.encode()).hexdigest()


def save(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
