"""Write ``docs/performance.md`` and its picture, from the stored records of speed and growth alone.

``make bench`` and ``make bench-scaling`` run it at their end.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from comparing import HEADINGS, Row

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent / "docs"
PICTURE = "scaling.svg"
#: Of Okabe and Ito, which all readers can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73")
#: What a number that is held fixed is called, where its letter would mislead.
FIXED = {"nnz": "words per row"}

INTRODUCTION = """# Performance

`python benchmarks/performance_page.py` writes this page from the records in `benchmarks/results` alone.

How to read the numbers: a time is the best of several, all works of a row taking turns in one process under
the same limit of threads. So ratios within a row mean more than times, and times of different rows, or
machines, are not to be compared. A *floor* is the least that the task can take (every cell read, or added,
once); a *peer* is another library at a like task. The ratio is ours to the other's where the goal is "<=",
the other's to ours where it is ">=". Without a goal it says how many times as fast as a peer we are, or how
many times a floor we take. A goal that is missed is shown as **missed**.

Memory that a work has freed stays with the process, for ours and for the others alike: to ask a virtual
machine for it again can take longer than the work, and now and then does. Earlier records of this page, made
without that, have class sums on S at 3.0 to 4.0 times the floor and the raw fit at 1.1 to 1.2 times its peer.
In the row of raw text only ours and the peer of its goal take turns; the others come after them, by
themselves, as some give memory back that the next work must ask for again. With all of them in turns that
goal was missed (6.3 x), as it was without keeping memory; runs on this machine differ by a tenth or more,
and that row and the raw fit are near their goals.
"""

SIZES = """S is 20,000 rows x 100,000 words of 20 classes, B is 800,000 x 50,000 of 100 classes, both with
frequencies and lengths as in language; numbers of cells are in the record. Where ours may use two threads, so
may the others, but some work in one thread by nature: {single}. For the row of prediction the most frequent
words, 4 in 100, are left out of the fit as stop words are, so that the kept ones hold few of the cells; both
sides predict complete rows. Vowpal Wabbit and fastText read words from a file; to write it is not in their
times.
"""

GROWTH = """## Scaling

`{command}` measures exponents, the slope of log time over log size, each axis over two decades while the
others are held fixed. One thread, processor time, all sizes taking turns.
{memory}Slopes are taken over the upper sizes, where the axis shows: at the lower end, what does not grow
hides it, and from some size on code is compiled, so that times fall. The goal is at most
{goal} in rows, cells, features and classes; kept features have none.
"""
MEMORY = """Memory stays with the process once it has it: to find hundreds of megabytes anew can take a system
several times as long as to fill them, and says nothing of the work.
"""


def table(headings: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """In Markdown; bars inside cells would end them."""
    rows = [headings, ["---"] * len(headings), *lines]
    return (
        "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows) + "\n"
    )


def measured(told: dict[str, Any]) -> str:
    """Where and when, in a sentence."""
    versions = ", ".join(f"{name} {number}" for name, number in told["versions"].items())
    load = told.get("load_average")
    busy = "" if load is None else f"; load average at its end {load:g}"
    return f"{told['date']}, {told['cores']} cores, python {told['python']}, {versions}{busy}."


def bold_missed(line: list[str]) -> list[str]:
    return [*line[:-1], "**missed**" if line[-1] == "missed" else line[-1]]


def speed_section(record: dict[str, Any]) -> str:
    groups = list(record["rows"].values())
    rows = [Row.from_record(one) for group in groups for one in group["rows"]]
    judged = [c.met(row.ours) for row in rows if row.ours is not None for c in row.comparisons]
    single = sorted({name for row in rows for name in row.facts.get("one thread by nature", ())})
    lines = [bold_missed(line) for row in rows for line in row.lines()]
    counts = f"{judged.count(True)} goals are met, {judged.count(False)} are missed."
    skipped = sum(row.ours is None for row in rows)
    if skipped:
        counts += f" {skipped} rows were not run; the table says why."
    stamps = {group["measured"]["command"]: group["measured"] for group in groups}
    told = "\n".join(f"- `{command}`: {measured(stamp)}" for command, stamp in stamps.items())
    return "\n".join(
        [
            f"## Goals\n\n`{record['command']}` prints this table. {counts}\n",
            table(HEADINGS, lines),
            SIZES.format(single="; ".join(single)),
            f"Record: `benchmarks/results/speed.json`.\n\n{told}\n",
        ]
    )


def growth_section(record: dict[str, Any]) -> str:
    lines = []
    for axis, found in record["axes"].items():
        fixed = ", ".join(f"{FIXED.get(name, name)} = {number:,}" for name, number in found["fixed"].items())
        for work, fit in found["fits"].items():
            goal = f"<= {record['goal']}" if axis != "K" else ""
            outcome = "" if not goal else "met" if fit["exponent"] <= record["goal"] else "**missed**"
            sizes = f"{fit['sizes'][0]:,} to {fit['sizes'][-1]:,}"
            lines.append(
                [f"{found['means']} ({axis})", fixed, work, sizes, f"{fit['exponent']:.2f}", goal, outcome]
            )
    headings = ("axis", "held fixed", "work", "slope over", "exponent", "goal", "")
    return "\n".join(
        [
            GROWTH.format(
                command=record["command"],
                goal=record["goal"],
                memory=MEMORY if record.get("memory kept") else "",
            ),
            table(headings, lines),
            f"![times against sizes, with the slopes](pictures/{PICTURE})\n",
            f"Record: `benchmarks/results/scaling.json`. {measured(record)}\n",
        ]
    )


def page(results: Path) -> str:
    """All sections for which there are records."""
    sections = [INTRODUCTION]
    for name, section in (("speed", speed_section), ("scaling", growth_section)):
        file = results / f"{name}.json"
        if file.exists():
            sections.append(section(json.loads(file.read_text(encoding="utf-8"))))
    return "\n".join(sections)


def draw(record: dict[str, Any], path: Path) -> None:
    """Times against sizes, an axis in each panel; lines are the slopes, over the sizes that they are of."""
    import matplotlib as mpl
    import numpy as np
    from matplotlib.figure import Figure

    axes = record["axes"]
    figure = Figure(figsize=(3.0 * len(axes), 3.2), layout="constrained")
    for panel, (name, found) in zip(figure.subplots(1, len(axes)), axes.items(), strict=True):
        for colour, (work, times) in zip(COLOURS, found["seconds"].items(), strict=False):
            fit = found["fits"][work]
            used = np.array(fit["sizes"], dtype=float)
            at = np.array([times[found["sizes"].index(size)] for size in fit["sizes"]])
            middle = np.exp(np.mean(np.log(at)) + fit["exponent"] * (np.log(used) - np.mean(np.log(used))))
            panel.plot(found["sizes"], times, "o", color=colour, markersize=4)
            panel.plot(used, middle, color=colour, label=f"{work}: {fit['exponent']:.2f}")
        panel.set(xscale="log", yscale="log", xlabel=f"{found['means']} ({name})")
        panel.legend(frameon=False, fontsize=8)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(alpha=0.25, linewidth=0.6)
    figure.axes[0].set_ylabel("seconds, one thread")
    # The same record gives the same file: no date, no random names.
    with mpl.rc_context({"svg.hashsalt": "maxdisc", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None, "Creator": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder of the records")
    parser.add_argument("--docs", type=Path, default=DOCS, help="folder of the page")
    options = parser.parse_args()
    (options.docs / "pictures").mkdir(parents=True, exist_ok=True)
    (options.docs / "performance.md").write_text(page(options.results), encoding="utf-8")
    scaling = options.results / "scaling.json"
    if scaling.exists():
        record = json.loads(scaling.read_text(encoding="utf-8"))
        draw(record, options.docs / "pictures" / PICTURE)


if __name__ == "__main__":
    main()
