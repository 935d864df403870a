"""``predict``: labels for new rows, in their order, batch by batch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import (
    OUTPUT,
    DataArgument,
    FileOptions,
    ForceOption,
    FormatOption,
    ModelArgument,
    QuietOption,
    TextOption,
)
from maxdisc.cli.outputs import opened_output, path_of, require_writable
from maxdisc.cli.predict.decisions import DecisionOptions, Decisions

if TYPE_CHECKING:
    from maxdisc.cli.model import LoadedModel
    from maxdisc.files import Batch, Dataset
    from maxdisc.inspection.decisive_features import Reason
    from maxdisc.inspection.model_input import Predictions

PREDICTED = ("label", "probability", "runner_up", "runner_up_probability")


@command
@flatten_groups
def predict(
    model: ModelArgument,
    data: DataArgument,
    *,
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
    decisions: DecisionOptions,
    text: TextOption = None,
    format: FormatOption = None,
    files: FileOptions,
    force: ForceOption = False,
    json: Annotated[
        bool, typer.Option("--json", help="Write JSON Lines, one object per row.", rich_help_panel=OUTPUT)
    ] = False,
    safe_csv: Annotated[
        bool,
        typer.Option(
            "--safe-csv",
            help="For spreadsheets: put an apostrophe before cells that would run as formulas.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    quiet: QuietOption = False,
) -> None:
    """Label new rows: label, probability and runner-up, in the order of the rows.

    With --explain the words or features that decided are added, with
    their log-odds against the runner-up; "no" marks a word that is absent.

    With --unknown the column novelty is added: the p-value of "belongs to
    one of the classes". Rows at or below the threshold are labelled unknown.

    With --costs the columns decision and expected_cost are added: the first
    column of the file names the true class, each further one a decision.

    [bold]Examples[/]

    maxdisc predict topics.maxdisc new.csv -o labelled.csv --keep id --explain 5

    maxdisc predict topics.maxdisc new.csv -o labelled.csv --unknown 0.01

    maxdisc predict topics.maxdisc new.csv -o labelled.csv --abstain-below 0.8

    maxdisc predict tumours.maxdisc new.csv -o decided.csv --costs costs.csv

    echo 'the goalie saved the game' | maxdisc predict topics.maxdisc -
    """
    speech = Speech(quiet)
    target = path_of(output)
    decisions.validate()
    if target is not None:
        read = [path for path in (model, decisions.costs) if path is not None]
        require_writable(target, force, data, None if format is None else format.value, read)
    from maxdisc.cli.model import LoadedModel, Unseen, note_missing
    from maxdisc.files import format_to_write, open_sink

    form = format_to_write(target, "jsonl" if json else None)
    if safe_csv and form not in ("csv", "tsv"):
        raise BadInputError(f"--safe-csv is for CSV and TSV, and {form} is written: leave it out.")
    loaded = LoadedModel.read(model, text)
    decided = Decisions(decisions, loaded, speech)
    dataset = loaded.dataset(data, None if format is None else format.value, files)
    shape = _Columns(loaded, _kept(dataset, keep), explain, probabilities, form == "jsonl", decided)
    _note_guesses(dataset, format is not None, speech)
    note_missing(loaded, dataset, speech)
    n_rows, unseen = 0, Unseen(loaded)
    progress = speech.progress("predicting", dataset.total_bytes, has_output=target is None)
    with opened_output(target) as file, progress as tell:
        batches = dataset.batches(list(dict.fromkeys([*loaded.wanted(dataset), *shape.kept])))
        sink = None
        for batch in batches:
            said = loaded.predicted(batch)
            unseen.count(said.X)
            columns = shape.of(batch, said)
            # Only when the first rows are good is anything said or written.
            sink = sink or open_sink(file, form, shape.names, shape.types, safe_csv)
            sink.write(columns)
            n_rows += len(batch)
            tell(n_rows, dataset.done_bytes)
        assert sink is not None  # a source without rows has raised
        sink.close()
    found = decided.summary
    if target is not None:
        speech.note(f"{n_rows:,} rows predicted{', ' if found else ''}{found}: {target}")
    elif found:
        speech.note(f"{n_rows:,} rows predicted, {found}")
    unseen.settle(speech)
    speech.say_notes()


class _Columns:
    """Which columns are written, and what goes into them."""

    def __init__(
        self,
        model: LoadedModel,
        kept: list[str],
        n_explained: int,
        probabilities: bool,
        structured: bool,
        decided: Decisions,
    ) -> None:
        self.model, self.kept, self.n_explained = model, kept, n_explained
        self.structured, self.decided = structured, decided
        predicted: list[tuple[str, type]] = [(name, float if "prob" in name else str) for name in PREDICTED]
        predicted += decided.columns
        if n_explained:
            predicted.append(("because", str))
        self.probabilities = probabilities
        if probabilities:
            predicted += [(f"p_{label}", float) for label in model.classes]
        given = [(name, str) for name in _free_names(kept, {name for name, _ in predicted})]
        self.names = [name for name, _ in [*given, *predicted]]
        self.types = [kind for _, kind in [*given, *predicted]]

    def of(self, batch: Batch, said: Predictions) -> list[Any]:
        """Return the cells of a batch, column by column."""
        import numpy as np

        labels, further = self.decided.of(said)
        columns: list[Any] = [batch.strings(name) for name in self.kept]
        columns += [labels, said.probability(said.first)]
        columns += [said.label(said.second), said.probability(said.second), *further]
        if self.n_explained:
            columns.append([self._written(row) for row in self.model.reasons(said, self.n_explained)])
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
    """Return names of copied columns that differ from those of the predictions."""
    out = []
    for name in kept:
        free = name
        while free in taken or (free != name and free in kept) or free in out:
            free = f"given_{free}"
        out.append(free)
    return out


def _kept(dataset: Dataset, patterns: list[str] | None) -> list[str]:
    from maxdisc.files import matching

    name = dataset.places[0].name
    if patterns:
        return matching(patterns, dataset.names, name)
    # Documents in files are known by their file, cells by their name.
    return {"folder": ["file"], "h5ad": ["obs_names"]}.get(dataset.formats[name], [])


def _note_guesses(dataset: Dataset, told: bool, speech: Speech) -> None:
    """Say what a file without a telling name was taken for."""
    place = dataset.places[0]
    form = dataset.formats[place.name]
    if place.format is None and not told:
        what = "one document on each line" if form == "lines" else form
        speech.note(f"{place.name} read as {what}; change with --format")
