"""``predict``: labels for new rows, in their order, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.failures import command
from maxdisc.cli.options import (
    OUTPUT,
    DataArgument,
    EncodingOption,
    ForceOption,
    FormatOption,
    ModelArgument,
    QuietOption,
    TextOption,
)
from maxdisc.cli.outputs import opened_output, path_of, require_writable
from maxdisc.cli.speech import Speech

if TYPE_CHECKING:
    from maxdisc.cli.evidence import Reason
    from maxdisc.cli.loaded import LoadedModel, Predictions
    from maxdisc.sources import Batch, Dataset

PREDICTED = ("label", "probability", "runner_up", "runner_up_probability")


@command
def predict(
    model: ModelArgument,
    data: DataArgument,
    output: Annotated[
        Optional[Path],
        typer.Option(
            "--output",
            "-o",
            metavar="OUT",
            help="A .csv, .tsv, .parquet or .jsonl file; by default CSV on standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    explain: Annotated[
        int,
        typer.Option(
            "--explain", metavar="N", min=0, help="Add the N features that decided.", rich_help_panel=OUTPUT
        ),
    ] = 0,
    probabilities: Annotated[
        bool,
        typer.Option("--probabilities", help="Add the probability of every class.", rich_help_panel=OUTPUT),
    ] = False,
    keep: Annotated[
        Optional[list[str]],
        typer.Option(
            "--keep",
            metavar="COLS",
            help="Columns to copy: names, comma lists, globs.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    text: TextOption = None,
    format: FormatOption = None,
    encoding: EncodingOption = "utf-8",
    force: ForceOption = False,
    json: Annotated[
        bool, typer.Option("--json", help="Write JSON Lines, one object a row.", rich_help_panel=OUTPUT)
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Label new rows: label, probability and runner-up, in the order of the rows.

    With --explain the words or features that decided are added, with
    their log-odds against the runner-up; "no" marks a word that is absent.

    [bold]Examples[/]

    maxdisc predict topics.maxdisc new.csv -o labelled.csv --keep id --explain 5

    echo 'the goalie saved the game' | maxdisc predict topics.maxdisc -
    """
    speech = Speech(quiet)
    target = path_of(output)
    if target is not None:
        require_writable(target, force, data, None if format is None else format.value, [model])
    from maxdisc.cli.loaded import LoadedModel, Unseen
    from maxdisc.sources import format_to_write, open_sink

    form = format_to_write(target, "jsonl" if json else None)
    loaded = LoadedModel.of(model, text)
    dataset = loaded.dataset(data, None if format is None else format.value, encoding)
    shape = _Columns(loaded, _kept(dataset, keep), explain, probabilities, form == "jsonl")
    _note_guesses(dataset, format is not None, speech)
    n_rows, unseen = 0, Unseen(loaded)
    with opened_output(target) as file, speech.progress("predicting", dataset.total_bytes) as tell:
        batches = dataset.batches(list(dict.fromkeys([*loaded.columns, *shape.kept])))
        sink = None
        for batch in batches:
            said = loaded.predicted(batch)
            unseen.count(said.X)
            columns = shape.of(batch, said)
            # Only when the first rows are good is anything said or written.
            sink = sink or open_sink(file, form, shape.names, shape.types)
            sink.write(columns)
            n_rows += len(batch)
            tell(n_rows, dataset.done_bytes)
        assert sink is not None  # a source without rows has raised
        sink.close()
    if target is not None:
        speech.note(f"{n_rows:,} rows predicted: {target}")
    unseen.settle(speech)
    speech.say_notes()


class _Columns:
    """Which columns are written, and what goes into them."""

    def __init__(
        self, model: LoadedModel, kept: list[str], n_explained: int, probabilities: bool, structured: bool
    ) -> None:
        self.model, self.kept, self.n_explained = model, kept, n_explained
        self.structured = structured
        predicted: list[tuple[str, type]] = [(name, float if "prob" in name else str) for name in PREDICTED]
        if n_explained:
            predicted.append(("because", str))
        self.probabilities = probabilities
        if probabilities:
            predicted += [(f"p_{label}", float) for label in model.classes]
        given = [(name, str) for name in _free_names(kept, {name for name, _ in predicted})]
        self.names = [name for name, _ in [*given, *predicted]]
        self.types = [kind for _, kind in [*given, *predicted]]

    def of(self, batch: Batch, said: Predictions) -> list[Any]:
        """The cells of a batch, column by column."""
        import numpy as np

        columns: list[Any] = [batch.strings(name) for name in self.kept]
        for which in (said.first, said.second):
            columns += [said.label(which), said.probability(which)]
        if self.n_explained:
            columns.append([self._written(row) for row in said.reasons(self.model, self.n_explained)])
        if self.probabilities:
            columns += np.exp(said.log_probability).T.tolist()
        return columns

    def _written(self, reasons: list[Reason]) -> Any:
        is_text = self.model.text is not None
        if self.structured:
            return [
                {"feature": r.feature, "log_odds": r.log_odds, **({"present": r.present} if is_text else {})}
                for r in reasons
            ]
        return ", ".join(
            f"{'no ' if is_text and not r.present else ''}{r.feature} {r.log_odds:+.2f}" for r in reasons
        )


def _free_names(kept: list[str], taken: set[str]) -> list[str]:
    """What columns are called beside those of the predictions."""
    out = []
    for name in kept:
        free = name
        while free in taken or (free != name and free in kept) or free in out:
            free = f"given_{free}"
        out.append(free)
    return out


def _kept(dataset: Dataset, patterns: list[str] | None) -> list[str]:
    from maxdisc.sources import matching

    name = dataset.places[0].name
    if patterns:
        return matching(patterns, dataset.names, name)
    # Documents in files are known by their file.
    return ["file"] if dataset.formats[name] == "folder" else []


def _note_guesses(dataset: Dataset, told: bool, speech: Speech) -> None:
    """Say what a file without a telling name was taken for."""
    place = dataset.places[0]
    form = dataset.formats[place.name]
    if place.format is None and not told:
        what = "one document on each line" if form == "lines" else form
        speech.note(f"{place.name} read as {what}; change with --format")
