"""Rows to fit to: opened, read into memory, and refused if their labels are no classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError

if TYPE_CHECKING:
    from maxdisc.cli.fit.options import DataOptions
    from maxdisc.cli.fit.request import FitRequest
    from maxdisc.cli.labelled import Described, LabelledRows
    from maxdisc.cli.options import FileOptions
    from maxdisc.files import Dataset, Roles


def open_data(data: Sequence[str], columns: DataOptions, files: FileOptions) -> Dataset:
    """Return the data set that these options describe."""
    from maxdisc.files import Dataset

    return Dataset(
        data,
        format=columns.format_name,
        text_column=next(iter(columns.text or ()), None),
        label_column=columns.label,
        **files.reading(),
    )


def read_rows(
    request: FitRequest, dataset: Dataset, roles: Roles, speech: Speech, hint: str = ""
) -> LabelledRows:
    """Read all rows into memory; ``hint`` says what else can be done with rows that have no label."""
    from maxdisc.cli.labelled import read_labelled

    rows = read_labelled(
        dataset,
        roles.label,
        roles.text,
        roles.features,
        request.data.skip_unlabelled,
        speech,
        request.data.unlabelled,
        hint,
        roles.categories,
        roles.truths,
    )
    require_classes(rows, roles.label, dataset.name, request.labels_are_names)
    return rows


def require_classes(rows: Described, column: str, source: str, are_names: bool) -> None:
    """Raise ``BadInputError`` for labels of one class, and for a quantity."""
    from maxdisc.cli.labelled import classes_among, hold_numbers
    from maxdisc.rows.validation import are_too_many

    classes = classes_among(rows)
    if len(classes) < 2:
        only = ", ".join(map(repr, classes))
        raise BadInputError(
            f"column {column!r} of {source} has only one class, {only}: a classifier needs two or more."
        )
    if not are_names and are_too_many(len(classes), len(rows)) and hold_numbers(classes):
        raise BadInputError(
            f"column {column!r} of {source} holds {len(classes):,} different numbers in {len(rows):,} rows: "
            "is it a quantity? Bin it into classes, or say that the numbers are names with "
            f"--label {column!r} --categorical {column!r}."
        )
