"""``fit --engine dask``: every file is a partition, read in batches by the worker that gets it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.adapters.dask import DaskEngine, connected
from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError
from maxdisc.cli.labelled import Unlabelled, naming_rows, require_short
from maxdisc.engines.partitioned_fit import Labelled, fit_labelled
from maxdisc.files import Dataset, Roles, SourceError
from maxdisc.fitting.settings import Settings


@dataclass(frozen=True, eq=False)
class SeenRows:
    """Summary of labelled rows that stay with the workers; summaries add."""

    y: npt.NDArray[np.str_]  # (C,)
    number: int
    unlabelled: int
    first: str
    formats: dict[str, str]

    def __len__(self) -> int:
        return self.number

    def __add__(self, other: SeenRows) -> SeenRows:
        return SeenRows(
            np.union1d(self.y, other.y),
            self.number + other.number,
            self.unlabelled + other.unlabelled,
            self.first or other.first,
            self.formats | other.formats,
        )


@dataclass(frozen=True)
class _Reading:
    """Reader of one file on a worker."""

    roles: Roles
    columns: Sequence[str]
    options: dict[str, Any]
    has_column_families: bool

    def __call__(self, file: tuple[str, str | None]) -> Iterator[Labelled]:
        (path, form), roles = file, self.roles
        names: dict[str, Any] = {"text_column": roles.text, "label_column": roles.label}
        try:
            dataset = Dataset([path], format=form, **names, **self.options)
            for batch in dataset.batches([roles.label, *self.columns], may_be_empty=True):
                told = partial(naming_rows, where=batch.where)
                if not self.columns:
                    yield Labelled((batch, dataset.formats), None, told=told)
                    continue
                _, kept = Unlabelled(roles.label, skip=True).sorted_out(batch)
                batch = batch if kept.all() else batch.rows(kept)
                X: Any
                if roles.text:
                    X = batch.texts(roles.text)
                elif self.has_column_families:
                    X = batch.typed(self.columns, roles.categories, roles.truths)
                else:
                    X = batch.numbers(self.columns)
                yield Labelled(X, batch.labels(roles.label).astype(np.str_), told=told)
        except FileNotFoundError:
            raise SourceError(f"{path} is not there for a worker of Dask: all must see the files.") from None


def fit_on_dask(
    model: Any, dataset: Dataset, roles: Roles, scheduler: str | None, skip_unlabelled: bool, speech: Speech
) -> tuple[Any, SeenRows]:
    """Fit a model to files read by Dask workers; return it with a summary of the rows."""
    if any(place.once for place in dataset.places):
        raise BadInputError("standard input and pipes can be read only once: leave out --engine dask.")
    if roles.text is None and not roles.features:
        raise BadInputError("svmlight and h5ad are read here: leave out --engine dask.")
    files = [(str(place.path.resolve()), place.format) for place in dataset.places if place.path is not None]
    columns = [roles.text] if roles.text else list(roles.features)
    names = None if roles.text else np.array(columns, dtype=object)
    has_column_families = not roles.text and Settings.of(model.get_params(deep=False)).reads_frames()
    given = (dataset.options, has_column_families)
    labels, rows = (DaskEngine(files, _Reading(roles, some, *given)) for some in ((), columns))
    # A failure is one line, also where it cuts connections; the threads behind them outlive this function.
    logging.disable(logging.CRITICAL)
    with speech.progress("fitting on Dask"), connected(scheduler):
        (seen,) = labels.added(partial(_seen, column=roles.label))
        unlabelled = Unlabelled(roles.label, skip_unlabelled)
        unlabelled.count, unlabelled.first = seen.unlabelled, seen.first
        unlabelled.settle(dataset.name, seen.number + seen.unlabelled, speech)
        if len(seen.y) < 2:
            raise BadInputError(
                f"column {roles.label!r} of {dataset.name} has only one class, {seen.y.tolist()[0]!r}: a "
                "classifier needs two or more."
            )
        fit_labelled(model, rows, seen.y, names)
    logging.disable(logging.NOTSET)
    return model, seen


def _seen(part: Labelled, column: str) -> list[SeenRows]:
    batch, formats = part.X
    unlabelled = Unlabelled(column, skip=True)
    y, kept = unlabelled.sorted_out(batch)
    require_short(y[kept], column, batch.rows(kept))
    labels = np.unique(y[kept].astype(np.str_))
    return [SeenRows(labels, int(kept.sum()), unlabelled.count, unlabelled.first, dict(formats))]
