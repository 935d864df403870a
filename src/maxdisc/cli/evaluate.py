"""``evaluate`` and ``report``: how well a model does on labelled rows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from maxdisc.cli.console import Speech, results, say_json
from maxdisc.cli.failures import BadInputError, CheckFailedError, command
from maxdisc.cli.option_groups import flatten_groups
from maxdisc.cli.options import (
    DATA,
    OUTPUT,
    DataArgument,
    FileOptions,
    ForceOption,
    FormatOption,
    JsonOption,
    LabelOption,
    ModelArgument,
    QuietOption,
    ReportFormat,
    SkipUnlabelledOption,
    TextOption,
)
from maxdisc.cli.outputs import opened_output, require_writable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from maxdisc.cli.model import LoadedModel
    from maxdisc.files import Dataset
    from maxdisc.inspection.model_input import Predictions

_MOST_CLASSES = 30


@command
@flatten_groups
def evaluate(
    model: ModelArgument,
    data: DataArgument,
    *,
    min_accuracy: Annotated[
        Optional[float],
        typer.Option(
            "--min-accuracy",
            metavar="A",
            min=0.0,
            max=1.0,
            help="Exit with 1 if the accuracy is lower.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    text: TextOption = None,
    label: LabelOption = None,
    format: FormatOption = None,
    files: FileOptions,
    skip_unlabelled: SkipUnlabelledOption = False,
    json: JsonOption = False,
    quiet: QuietOption = False,
) -> None:
    """Compare a model's labels with those of the data: accuracy, log-loss, and each class.

    [bold]Examples[/]

    maxdisc evaluate topics.maxdisc test.csv

    maxdisc evaluate topics.maxdisc test.csv --min-accuracy 0.9 --json
    """
    speech = Speech(quiet)
    from maxdisc.cli.model import LoadedModel, note_missing

    loaded = LoadedModel.read(model, text, label)
    dataset = loaded.dataset(data, None if format is None else format.value, files)
    note_missing(loaded, dataset, speech)
    facts = _judged(loaded, dataset, skip_unlabelled, speech)
    speech.say_notes()
    say_json(facts) if json else _show(facts)
    if min_accuracy is not None and facts["accuracy"] < min_accuracy:
        raise CheckFailedError(f"the accuracy, {facts['accuracy']:.4f}, is below {min_accuracy:g}.")


def judged_batches(
    model: LoadedModel, dataset: Dataset, skip_unlabelled: bool, speech: Speech
) -> Iterator[tuple[Any, Any, Predictions]]:
    """Yield labels, their codes and the predictions of each batch; a label that is unknown has code C."""
    import numpy as np

    from maxdisc.cli.labelled import Unlabelled
    from maxdisc.cli.model import Unseen

    column = label_column(model, dataset)
    unlabelled, unseen = Unlabelled(column, skip_unlabelled), Unseen(model)
    position = {label: c for c, label in enumerate(model.classes)}
    n_read = 0
    with speech.progress("evaluating", dataset.total_bytes) as tell:
        for batch in dataset.batches([column, *model.wanted(dataset)]):
            y, kept = unlabelled.sorted_out(batch)
            n_read += len(batch)
            if kept.any():
                y, said = y[kept], model.predicted(batch if kept.all() else batch.rows(kept))
                unseen.count(said.X)
                yield y, np.array([position.get(label, len(position)) for label in y]), said
            tell(n_read, dataset.done_bytes)
    unlabelled.settle(dataset.name, n_read, speech)
    unseen.settle(speech)


def log_probability_of(codes: Any, said: Predictions) -> Any:
    """Return the log-probabilities of the labels with these codes, which the model knows; never -inf."""
    import numpy as np

    known = np.flatnonzero(codes < said.log_probability.shape[1])
    return np.maximum(said.log_probability[known, codes[known]], np.log(np.finfo(np.float64).tiny))


def note_unknown(
    unknown: dict[str, int], model: LoadedModel, dataset: Dataset, n_rows: int, speech: Speech
) -> None:
    """Say how many labels the model does not know; raise ``BadInputError`` if it knows none of them."""
    from maxdisc.files import nearest
    from maxdisc.inspection.safe_text import counted

    if not unknown:
        return
    first, count = next(iter(unknown)), sum(unknown.values())
    speech.note(
        f"{counted(count, 'row has', 'rows have')} a label that {model.path} does not know, such as "
        f"{first!r}: wrong for the accuracy, and not in the log-loss"
    )
    if count == n_rows:
        raise BadInputError(
            f"no label in column {model.label!r} of {dataset.name} is known to {model.path}, first {first!r}"
            f"{nearest(first, model.classes)}"
        )


def _judged(model: LoadedModel, dataset: Dataset, skip_unlabelled: bool, speech: Speech) -> dict[str, Any]:
    """Counts of every batch, added up; a label that the model does not know is never right."""
    import numpy as np

    n_classes = len(model.classes)
    confusion = np.zeros((n_classes + 1, n_classes), dtype=np.int64)
    unknown: dict[str, int] = {}
    loss = 0.0
    for y, codes, said in judged_batches(model, dataset, skip_unlabelled, speech):
        np.add.at(confusion, (codes, said.first), 1)
        loss -= float(log_probability_of(codes, said).sum())
        for label in y[codes == n_classes]:
            unknown[label] = unknown.get(label, 0) + 1
    note_unknown(unknown, model, dataset, int(confusion.sum()), speech)
    return _figures(confusion, model.classes, loss, unknown)


def label_column(model: LoadedModel, dataset: Dataset) -> str:
    """Return the column that holds the labels; raise ``BadInputError`` if it is not known or not there."""
    from maxdisc.files import nearest

    if model.label is None:
        raise BadInputError(f"{model.path} does not say which column held the labels: name it with --label.")
    if model.label not in dataset.names:
        raise BadInputError(
            f"{dataset.places[0].name} has no column {model.label!r}, which held the labels; "
            f"name the one that does with --label{nearest(model.label, dataset.names)}"
        )
    return model.label


def _figures(confusion: Any, classes: list[str], loss: float, unknown: dict[str, int]) -> dict[str, Any]:
    import numpy as np

    n_classes = len(classes)
    right = np.diagonal(confusion[:n_classes])
    rows, predicted = confusion.sum(axis=1)[:n_classes], confusion.sum(axis=0)
    with np.errstate(invalid="ignore"):
        recall, precision = right / rows, right / predicted
        f1 = 2 * right / (rows + predicted)
    n = int(confusion.sum())
    present = rows > 0
    return {
        "rows": n,
        "accuracy": float(right.sum() / n),
        "majority_accuracy": float(max(rows.max(), max(unknown.values(), default=0)) / n),
        "macro_f1": float(np.mean(f1[present])),
        "log_loss": float(loss / max(1, rows.sum())),
        "classes": [
            {
                "label": label,
                "rows": int(rows[c]),
                "precision": None if predicted[c] == 0 else float(precision[c]),
                "recall": None if rows[c] == 0 else float(recall[c]),
                "f1": None if rows[c] + predicted[c] == 0 else float(f1[c]),
            }
            for c, label in enumerate(classes)
        ],
        "unknown_labels": unknown,
    }


def _show(facts: dict[str, Any]) -> None:
    from rich.table import Table
    from rich.text import Text

    from maxdisc.inspection.safe_text import visible

    out = results()
    out.print(
        Text.assemble(
            ("accuracy ", "bold"),
            (f"{facts['accuracy']:.1%}", "bold green"),
            f" on {facts['rows']:,} rows (the largest class alone: {facts['majority_accuracy']:.1%}), "
            f"macro F1 {facts['macro_f1']:.3f}, log-loss {facts['log_loss']:.3f}",
        ),
        soft_wrap=True,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("class", overflow="ellipsis", no_wrap=True)
    for name in ("rows", "precision", "recall", "F1"):
        table.add_column(name, justify="right")
    ordered = sorted(facts["classes"], key=lambda c: -c["rows"])
    for c in ordered[:_MOST_CLASSES]:
        figures = ["-" if c[k] is None else f"{c[k]:.3f}" for k in ("precision", "recall", "f1")]
        table.add_row(Text(visible(c["label"])), f"{c['rows']:,}", *figures)
    out.print(table)
    if len(ordered) > _MOST_CLASSES:
        out.print(f"and {len(ordered) - _MOST_CLASSES} smaller classes: --json shows all of them")


@command
@flatten_groups
def report(
    model: ModelArgument,
    *,
    data: Annotated[
        list[str],
        typer.Option("--data", metavar="DATA", help="Labelled rows; may be repeated.", rich_help_panel=DATA),
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="OUT", help="The report to write.", rich_help_panel=OUTPUT),
    ],
    form: Annotated[
        Optional[ReportFormat],
        typer.Option(
            "--format",
            help="Format of the report; by default by the suffix of OUT, else html.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    title: Annotated[
        Optional[str],
        typer.Option("--title", help="Title of the report.", rich_help_panel=OUTPUT),
    ] = None,
    text: TextOption = None,
    label: LabelOption = None,
    data_format: Annotated[
        Optional[str],
        typer.Option("--data-format", help="Format of the data, if not recognised.", rich_help_panel=DATA),
    ] = None,
    files: FileOptions,
    skip_unlabelled: SkipUnlabelledOption = False,
    force: ForceOption = False,
    quiet: QuietOption = False,
) -> None:
    """Write a report: what was learnt, how good it is, and the mistakes with their evidence.

    [bold]Examples[/]

    maxdisc report topics.maxdisc --data test.csv -o report.html

    maxdisc report topics.maxdisc --data test.csv -o report.md
    """
    speech = Speech(quiet)
    require_writable(output, force, data, data_format, [model])
    written = form.value if form is not None else _by_name(output)
    from maxdisc.cli.labelled import read_labelled
    from maxdisc.cli.model import LoadedModel, Unseen, note_missing
    from maxdisc.files import summary
    from maxdisc.model_file.about import file_names

    loaded = LoadedModel.read(model, text, label)
    dataset = loaded.dataset(data, data_format, files)
    note_missing(loaded, dataset, speech)
    column = label_column(loaded, dataset)
    columns = (column, loaded.text, [] if loaded.text else loaded.wanted(dataset))
    rows = read_labelled(dataset, *columns, skip_unlabelled, speech, words=loaded.words)
    import maxdisc.report as reports

    about = {**loaded.about, "data": file_names(dataset.formats)}
    if loaded.readings:
        about["readings"] = summary(loaded.readings)
    with speech.progress(f"evaluating {len(rows):,} rows"), rows.located():
        X = loaded.fitting(rows.X, dataset.matrix_names)
        made = reports.evaluate(loaded.estimator, X, rows.y, title=title, about=about)
        content = {"html": made.html, "md": made.markdown, "json": made.json}[written]()
    with opened_output(output) as file:
        file.write(content.encode("utf-8"))
    speech.note(f"{len(rows):,} rows evaluated: {output}")
    unseen = Unseen(loaded)
    unseen.count(X)
    unseen.settle(speech)
    speech.say_notes()


def _by_name(output: Path) -> str:
    return {".md": "md", ".markdown": "md", ".json": "json"}.get(output.suffix.lower(), "html")
