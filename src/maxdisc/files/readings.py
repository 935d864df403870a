"""Readings of columns that are not plain numbers or words.

Readings are found in the first rows of a fit and kept in the model file, so that new rows are read in the
same way, whatever they look like.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from maxdisc.files.cells import as_text, is_written, numbers, plain, shown
from maxdisc.files.date_notations import (
    DATE_PARTS,
    ORDERS,
    Moments,
    is_moments,
    moments_of,
    parse_dates,
    part_of,
)
from maxdisc.files.number_notations import DECIMALS, describe_number, parse_numbers
from maxdisc.files.places import SourceError

NUMBER, TEXT, UNCLEAR = "number", "text", "unclear"
# So many columns are told of.
_TOLD = 4


@dataclass(frozen=True)
class Reading:
    """How a feature is read: the columns it is made from, as what, and in which notation."""

    columns: tuple[str, ...]
    #: A number, a part of a date, text; or unclear, and the notation says why.
    what: str
    #: Of a number its decimal mark and unit, of a date the order of day, month and year.
    notation: str = ""

    @property
    def is_date(self) -> bool:
        """Whether the feature is a part of a date."""
        return self.what in DATE_PARTS

    def stored(self) -> list[Any]:
        """Return what a model file keeps."""
        return [list(self.columns), self.what, self.notation]

    @classmethod
    def of(cls, stored: Sequence[Any], feature: str) -> Reading:
        """Return a reading that a model file kept; raise ``SourceError`` if this version does not know it."""
        columns, what, notation = stored
        known = what == TEXT or (what in DATE_PARTS and notation in ORDERS)
        if not known and not (what == NUMBER and notation[:1] in DECIMALS):
            raise SourceError(
                f"the model reads {feature!r} as {what} {notation!r}, which this version of maxdisc does not "
                "know: upgrade maxdisc."
            )
        return cls(tuple(columns), what, notation)

    def numbers(self, column: Any, where: Callable[[int], str]) -> pa.Array:
        """Return the cells of its column as float64, null where one is missing."""
        array, name = plain(column), self.columns[0]
        if self.what == UNCLEAR:
            raise SourceError(f"column {name!r}: {self.notation}.")
        if self.is_date:
            return part_of(self.moments(array, where), self.what)
        if not is_written(array.type):
            return numbers(array, name, where)
        text = as_text(array, name, where)
        decimal, unit = self.notation[:1], self.notation[1:]
        values, good = parse_numbers(text, decimal, unit)
        (other,) = DECIMALS.keys() - {decimal}
        otherwise = pc.any(parse_numbers(text.filter(pc.invert(good)), other, unit)[1]).as_py()
        advice = f"say --decimal {other} if new files are written so, " if otherwise else ""
        _require_all(good, text, name, where, f"a number{describe_number(self.notation)}; {advice}")
        return values

    def moments(self, column: Any, where: Callable[[int], str]) -> Moments:
        """Return the dates of its column, of which the feature is a part."""
        array = plain(column)
        if is_moments(array.type):
            return moments_of(array)
        if pa.types.is_null(array.type):
            return np.full(len(array), np.datetime64("NaT", "s"), dtype="datetime64[s]")
        text = as_text(array, self.columns[0], where)
        moments, good = parse_dates(text, self.notation)
        _require_all(good, text, self.columns[0], where, f"a date ({ORDERS[self.notation]}); ")
        return moments

    def texts(self, columns: Iterable[Sequence[str | None]]) -> list[str]:
        """Return documents from the cells of its columns, one under the other."""
        return ["\n".join(filter(None, cells)) for cells in zip(*columns, strict=True)]


def sources(names: Iterable[str], readings: Mapping[str, Reading], there: Collection[str] = ()) -> list[str]:
    """Return the columns that features are made from; what is ``there`` by its own name is taken as it is."""
    taken = set(there)
    found: dict[str, None] = {}
    for name in names:
        own = name in taken or name not in readings
        found.update(dict.fromkeys((name,) if own else readings[name].columns))
    return list(found)


def with_decimal(decimal: str, names: Iterable[str], readings: Mapping[str, Reading]) -> dict[str, Reading]:
    """Return readings in which these columns of numbers have this decimal mark."""
    out = dict(readings)
    for name in names:
        known = readings.get(name, Reading((name,), NUMBER, "."))
        out[name] = replace(known, notation=decimal + known.notation[1:]) if known.what == NUMBER else known
    return out


def summary(readings: Mapping[str, Reading]) -> str:
    """Return in one line what is read how; empty if there is nothing to say."""
    told: dict[str, str] = {}
    for reading in readings.values():
        column = reading.columns[0]
        if reading.what == NUMBER:
            told[column] = f"numbers{describe_number(reading.notation)}"
        elif reading.is_date:
            parts = [other.what for other in readings.values() if other.columns == reading.columns]
            order = "" if reading.notation == "ymd" else f"{ORDERS[reading.notation]}: "
            told[column] = f"dates ({order}{', '.join(parts)})"
    alike: dict[str, list[str]] = {}
    for column, what in told.items():
        alike.setdefault(what, []).append(column)
    return "; ".join(f"{_some(columns)}: {what}" for what, columns in alike.items())


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _TOLD:,} more" if len(names) > _TOLD else ""
    return ", ".join(names[:_TOLD]) + more


def _require_all(good: pa.Array, text: pa.Array, name: str, where: Callable[[int], str], what: str) -> None:
    """Raise ``SourceError`` for the first cell that is not what its column holds."""
    row = pc.index(good, False).as_py()
    if row >= 0:
        raise SourceError(
            f"{where(row)}, column {name!r}: {shown(text[row].as_py())} is not {what}correct it, or leave "
            "the column out with --exclude."
        )
