"""Conversion of JSON rows to the input of a model, by the types of its columns."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxdisc.files import Batch, SourceError, nearest, table_of
from maxdisc.inspection.model_input import ModelInput
from maxdisc.rows.frames import written_out
from maxdisc.serve.refusals import RefusedError

_SHOWN = 40
_LISTED = 3


class Columns:
    """Columns of a model's table, by the type of their cells."""

    def __init__(self, taker: ModelInput) -> None:
        self.names = taker.features
        # Rows without column names are sparse: absent cells are zero.
        self.sparse = not self.names
        self._told_apart = taker.fitted.schema is not None
        known = self.names or [str(name) for name in taker.fitted.names]
        self.place = {name: at for at, name in enumerate(known)}
        self._known = known
        self._dates = {f: reading for f, reading in taker.readings.items() if reading.is_date}
        written, fitted = taker.fitted.written, taker.fitted
        self.kinds = [
            "category" if written[at] else "truth" if fitted.is_truth(at) else "number"
            for at in range(len(known))
        ]

    def taken(self, rows: list[dict[str, Any]]) -> Any:
        """Return rows as input of the model; a refusal names the row and the column."""
        rows = self._with_dates(rows)
        for row, cells in enumerate(rows):
            if not cells.keys() <= self.place.keys():
                self._refuse_unknown(row, cells)
        if not self.sparse:
            return self._table(rows)
        return self._objects(rows) if self._told_apart else self._matrix(rows)

    def _with_dates(self, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return rows with dates, given as text, replaced by their features."""
        for column in {reading.columns[0] for reading in self._dates.values()} - self.place.keys():
            for row, cells in enumerate(rows):
                if not isinstance(cells.get(column), str | None):
                    raise _other(cells[column], row, column, "a date as text")
            table = table_of({column: [cells.get(column) for cells in rows]}, {column})
            batch = Batch(table, "the request", 0, readings=self._dates)
            made = [name for name, reading in self._dates.items() if reading.columns == (column,)]
            try:
                parts = batch.numbers(made).to_pylist()
            except SourceError as error:
                raise RefusedError(422, str(error)) from None
            rows = [
                {**part, **{name: cell for name, cell in cells.items() if name != column}}
                for part, cells in zip(parts, rows, strict=True)
            ]
        return rows

    def _refuse_unknown(self, row: int, cells: dict[str, Any]) -> None:
        unknown = [name for name in cells if name not in self.place]
        shown = ", ".join(repr(name[:_SHOWN]) for name in unknown[:_LISTED])
        more = f" and {len(unknown) - _LISTED} more" if len(unknown) > _LISTED else ""
        # Searching for a similar name among very many takes long.
        near = nearest(unknown[0][:_SHOWN], self._known[:2000])
        raise RefusedError(422, f"row {row}: the model knows no column {shown}{more}{near}")

    def _table(self, rows: list[dict[str, Any]]) -> Any:
        columns = {}
        for name, kind in zip(self.names, self.kinds, strict=True):
            values = [cells.get(name) for cells in rows]
            read = _READERS[kind]
            columns[name] = [None if v is None else read(v, row, name) for row, v in enumerate(values)]
        return table_of(
            columns, {name for name, kind in zip(self.names, self.kinds, strict=True) if kind == "category"}
        )

    def _objects(self, rows: list[dict[str, Any]]) -> Any:
        """Return placeholder objects for columns without names."""
        out = np.full((len(rows), len(self._known)), None, dtype=object)
        for row, cells in enumerate(rows):
            for name, value in cells.items():
                if value is not None:
                    at = self.place[name]
                    out[row, at] = _READERS[self.kinds[at]](value, row, name)
        return out

    def _matrix(self, rows: list[dict[str, Any]]) -> Any:
        out = sp.lil_array((len(rows), len(self._known)), dtype=np.float64)
        for row, cells in enumerate(rows):
            for name, value in cells.items():
                if value is not None:
                    out[row, self.place[name]] = _number(value, row, name)
        return out.tocsr()


def _number(value: Any, row: int, name: str) -> float:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, int | float):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
        raise RefusedError(422, f"row {row}, column {name!r}: the number is too large; use finite numbers.")
    raise _other(value, row, name, "a number")


def _truth(value: Any, row: int, name: str) -> float:
    if isinstance(value, bool | int | float) and value in (0, 1):
        return float(value)
    raise _other(value, row, name, "true or false")


def _category(value: Any, row: int, name: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int | float):
        return written_out(_number(value, row, name))
    raise _other(value, row, name, "a category")


_READERS: dict[str, Any] = {"number": _number, "truth": _truth, "category": _category}


def _other(value: Any, row: int, name: str, wanted: str) -> RefusedError:
    shown = "an object" if isinstance(value, dict) else f"{value!r:.{_SHOWN}}"
    shown = "an array" if isinstance(value, list) else shown
    return RefusedError(
        422, f"row {row}, column {name[:_SHOWN]!r}: {shown} is not {wanted}; null if it is missing."
    )
