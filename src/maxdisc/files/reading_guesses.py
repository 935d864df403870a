"""Detection of the notation of numbers and dates in columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from maxdisc.files.cells import (
    MOSTLY,
    as_text,
    is_written,
    parsed,
    plain,
    share_of_numbers,
    shown,
    without_missing,
)
from maxdisc.files.date_notations import ORDERS, Moments, is_moments, moments_of, parse_dates, parts_that_tell
from maxdisc.files.number_notations import DECIMALS, parse_numbers, unit_of, without_unit
from maxdisc.files.readings import NUMBER, UNCLEAR, Reading

#: Number of cells of a column that are checked before all of them.
_HEAD = 200


@dataclass(frozen=True)
class _Found:
    """Columns by what they hold; those of numbers and dates with the values in each notation that fits."""

    plain: dict[str, pa.Array] = field(default_factory=dict)
    numbers: dict[str, tuple[dict[str, pa.Array], str]] = field(default_factory=dict)
    dates: dict[str, dict[str, Moments]] = field(default_factory=dict)
    unclear: dict[str, str] = field(default_factory=dict)
    examples: dict[str, pa.Array] = field(default_factory=dict)

    def look(self, name: str, array: pa.Array, where: Callable[[int], str]) -> None:
        """Find out what a column holds."""
        if is_moments(array.type):
            self.dates[name] = {"ymd": moments_of(array)}
        if not is_written(array.type):
            return
        text = as_text(array, name, where)
        if parsed(text) is not None:
            self.plain[name] = text
            return
        there = without_missing(text).drop_null()
        self.examples[name] = head = there.slice(0, _HEAD)
        if _readable(head).mean() < MOSTLY / 2:
            return
        unit = unit_of(there)
        share, found = _that_fit(partial(parse_numbers, unit=unit), DECIMALS, text)
        if share < 1 and share_of_numbers(text) >= MOSTLY:
            self.plain[name] = text  # whoever reads it names the few cells that are no numbers
        elif found:
            self.numbers[name] = found, unit
        elif found := _that_fit(parse_dates, ORDERS, text)[1]:
            self.dates[name] = found
        elif reason := _several_ways(head):
            self.unclear[name] = reason

    def decimal(self) -> str | None:
        """Return the common decimal mark of all unambiguous columns."""
        marks = {next(iter(found)) for found, _ in self.numbers.values() if len(found) == 1}
        if any(_has_point(text) for text in self.plain.values()):
            marks.add(".")
        return marks.pop() if len(marks) == 1 else None

    def order(self) -> str | None:
        """Return the common order of all unambiguous dates, except those that begin with the year."""
        orders = {next(iter(found)) for found in self.dates.values() if len(found) == 1} - {"ymd"}
        return orders.pop() if len(orders) == 1 else None


def guess_readings(
    table: pa.Table,
    where: Callable[[int], str],
    as_written: Collection[str] = (),
    decimal: str | None = None,
    dates: str | None = None,
) -> dict[str, Reading]:
    """Return how features are read but for plain numbers, words, and columns ``as_written``.

    A notation is taken if it fits the first rows of a column, all but a few. Where two fit, as with 1,234 or
    3/4/2024, it is that of the options ``decimal`` and ``dates``, or that of the other columns, or else the
    column is unclear.
    """
    found, times = _Found(), Counter(table.column_names)
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name not in as_written and times[name] == 1:
            found.look(name, plain(column), where)
    out = {name: Reading((name,), UNCLEAR, reason) for name, reason in found.unclear.items()}
    # Columns of plain numbers are looked at again only if there is a reason.
    mark = decimal or (found.decimal() if found.numbers else None)
    out |= _readings_of_numbers(found, mark)
    if mark is not None and (mark == decimal or mark == ","):
        out |= _readings_of_plain_numbers(found, mark, is_asked=mark == decimal)
    return out | _readings_of_dates(found, dates or found.order(), times)


def _readings_of_numbers(found: _Found, decimal: str | None) -> dict[str, Reading]:
    out: dict[str, Reading] = {}
    for name, (values, unit) in found.numbers.items():
        if mark := _chosen(values, decimal):
            out[name] = Reading((name,), NUMBER, mark + unit)
            continue
        example = next((c for c in found.examples[name].to_pylist() if "," in c or "." in c), "")
        reason = f"{shown(example)} has thousands or decimals: say --decimal . or --decimal ,"
        out[name] = Reading((name,), UNCLEAR, reason)
    return out


def _readings_of_plain_numbers(found: _Found, decimal: str, is_asked: bool) -> dict[str, Reading]:
    """Return how plain numbers are read where points group thousands, or where later rows may have marks."""
    out: dict[str, Reading] = {}
    for name, text in found.plain.items():
        values, good = parse_numbers(text, decimal)
        if _share(good) == 1 and (is_asked or not values.equals(parsed(text))):
            out[name] = Reading((name,), NUMBER, decimal)
    return out


def _readings_of_dates(found: _Found, wanted: str | None, names: Collection[str]) -> dict[str, Reading]:
    out: dict[str, Reading] = {}
    for name, moments in found.dates.items():
        if order := _chosen(moments, wanted):
            parts = [part for part in parts_that_tell(moments[order]) if f"{name} {part}" not in names]
            out |= {f"{name} {part}": Reading((name,), part, order) for part in parts}
            continue
        cells = found.examples[name]
        one, other, *_ = (parse_dates(cells, order)[0] for order in moments)
        reason = f"{shown(cells[int(np.argmax(one != other))].as_py())} begins with the day or with the month"
        out[name] = Reading((name,), UNCLEAR, f"{reason}: say --dates dmy or --dates mdy")
    return out


def look_like_values(cells: Sequence[str]) -> list[bool]:
    """Return of each cell whether it is a number or a date, however it is written."""
    return _readable(pa.array(cells, pa.string())).tolist()


def _that_fit(
    parse: Callable[[pa.Array, str], Any], notations: Iterable[str], text: pa.Array
) -> tuple[float, dict[str, Any]]:
    """Return the greatest share of cells that a notation fits, and the values in those with this share."""
    shares = {}
    for notation in notations:
        values, good = parse(text, notation)
        shares[notation] = (_share(good), values)
    best = max(share for share, _ in shares.values())
    return best, {n: values for n, (share, values) in shares.items() if share == best >= MOSTLY}


def _chosen(found: Mapping[str, Any], wanted: str | None) -> str | None:
    """Return the notation of a column: the wanted one if it fits, or any if all give the same values."""
    if wanted in found:
        return wanted
    first, *others = found.values()
    same = all(np.array_equal(np.asarray(first), np.asarray(o), equal_nan=True) for o in others)
    return next(iter(found)) if same else None


def _share(good: pa.Array) -> float:
    return float(pc.mean(good.cast(pa.uint8())).as_py() or 0.0)


def _has_point(text: pa.Array) -> bool:
    """Return whether plain numbers have a decimal point that cannot group thousands."""
    has_point = pc.any(pc.match_substring(text, ".")).as_py()
    return bool(has_point) and _share(parse_numbers(text, ",")[1]) < 1


def _ways(text: pa.Array) -> dict[str, list[npt.NDArray[np.bool_]]]:
    """Return which cells are numbers, in each notation and whatever their units, and which are dates."""
    bare = without_unit(text)
    goods = {
        "numbers": [parse_numbers(bare, mark)[1] for mark in DECIMALS],
        "dates": [parse_dates(text, order)[1] for order in ORDERS],
    }
    return {
        what: [np.asarray(pc.fill_null(g, False), dtype=np.bool_) for g in some]
        for what, some in goods.items()
    }


def _readable(text: pa.Array) -> npt.NDArray[np.bool_]:
    """Return which cells are a number or a date in any notation; one cell that is not if there are none."""
    if not len(text):
        return np.zeros(1, dtype=np.bool_)
    return np.any([good for some in _ways(text).values() for good in some], axis=0)


def _several_ways(text: pa.Array) -> str:
    """Return what is wrong with cells that are numbers or dates, but not in one notation; or nothing."""
    cells = text.to_pylist()
    for what, goods in _ways(text).items():
        if np.any(goods, axis=0).mean() < MOSTLY:
            continue
        same = [good for good in goods if good[0]]
        unlike = (cell for at, cell in enumerate(cells) if not any(good[at] for good in same))
        units = (cell for cell in cells if unit_of(pa.array([cell])) != unit_of(text.slice(0, 1)))
        other = next(unlike, None) or next(units, cells[-1])
        return f"it holds {what} written in several ways, such as {shown(cells[0])} and {shown(other)}"
    return ""
