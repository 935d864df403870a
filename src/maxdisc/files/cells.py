"""Conversion of cells to text and numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from maxdisc.files.byte_streams import decoded
from maxdisc.files.places import SourceError

#: Written like this, without regard to case, a number is missing.
MISSING = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?")
_TRUE, _FALSE = ("true",), ("false",)
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$"
_COMMA = re.compile(r"[-+]?[\d.]*,\d+")
_SHOWN = 40
#: With at least this share of numbers, a column is meant to be numeric.
MOSTLY = 0.9


def strings(column: Any, name: str, where: Callable[[int], str]) -> list[str | None]:
    """Return the cells of a column as text; None for a missing cell."""
    array = plain(column)
    kind = array.type
    if pa.types.is_floating(kind):
        # As pandas writes them to CSV: a label is the same in every format.
        return [None if v is None or v != v else repr(v) for v in array.to_pylist()]
    if pa.types.is_boolean(kind):
        return [None if v is None else str(v) for v in array.to_pylist()]
    if pa.types.is_nested(kind):
        raise SourceError(f"column {name!r} holds a {kind} in each cell, not text.")
    return list(as_text(array, name, where).to_pylist())


def as_text(array: pa.Array, name: str, where: Callable[[int], str]) -> pa.Array:
    """Return the array as strings; a cell that is not UTF-8 is named."""
    if pa.types.is_string(array.type):
        return array
    try:
        return array.cast(pa.string())
    except pa.ArrowInvalid:
        for row, value in enumerate(array.to_pylist()):
            if isinstance(value, bytes):
                decoded(value, f"{where(row)}, column {name!r}")
        raise
    except (pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise SourceError(f"column {name!r} holds {array.type}, not text.") from None


def numbers(column: Any, name: str, where: Callable[[int], str]) -> pa.Array:
    """Return the cells of a column as float64; true is 1, false is 0, missing is null."""
    array = plain(column)
    kind = array.type
    if pa.types.is_null(kind):
        return pa.nulls(len(array), pa.float64())
    if pa.types.is_boolean(kind):
        return array.cast(pa.uint8()).cast(pa.float64())
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return array.cast(pa.float64(), safe=False)
    if not is_written(kind):
        raise SourceError(f"column {name!r} holds {kind}, not numbers: leave it out with --exclude {name!r}.")
    text = as_text(array, name, where)
    values = parsed(text)
    if values is None:
        row, value = _first_unreadable(text)
        comma = "say --decimal , if the comma is a decimal mark, " if _COMMA.fullmatch(value.strip()) else ""
        raise SourceError(
            f"{where(row)}, column {name!r}: {shown(value)} is not a number; {comma}"
            "correct it, or fit without the column (--exclude) or with its values as categories "
            "(--categorical)."
        )
    return values


def categories(column: Any, name: str, where: Callable[[int], str]) -> pa.Array:
    """Return the cells of a column as stripped text, null where missing; 3.0 becomes "3"."""
    array = plain(column)
    if pa.types.is_floating(array.type) or pa.types.is_decimal(array.type):
        values = array.cast(pa.float64(), safe=False).to_pylist()
        written = [
            None if v is None or v != v else str(int(v)) if v.is_integer() else repr(v) for v in values
        ]
        return pa.array(written, pa.string())
    return without_missing(pa.array(strings(array, name, where), pa.string()))


def truths(column: Any, name: str, where: Callable[[int], str]) -> pa.Array:
    """Return the cells of a column as booleans, null where missing; 1 is true and 0 is false."""
    values = numbers(column, name, where)
    wrong = pc.fill_null(pc.invert(pc.is_in(values, pa.array([0.0, 1.0, None]))), False)
    if pc.any(wrong).as_py():
        row = int(pc.index(wrong, True).as_py())
        raise SourceError(
            f"{where(row)}, column {name!r}: {values[row].as_py():g} is neither true nor false; correct it, "
            "or leave the column out with --exclude."
        )
    return pc.not_equal(values, 0.0)


def parsed(text: pa.Array) -> pa.Array | None:
    """Parse text as float64; return None if any cell is not a number."""
    try:
        return text.cast(pa.float64())
    except pa.ArrowInvalid:
        pass
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    # Some chips and spreadsheets write +1.5.
    words = pc.replace_substring_regex(words, pattern=r"^\+(\d|\.)", replacement=r"\1")
    words = pc.if_else(pc.is_in(words, pa.array(MISSING)), pa.scalar(None, pa.string()), words)
    words = pc.if_else(pc.is_in(words, pa.array(_TRUE)), "1", words)
    words = pc.if_else(pc.is_in(words, pa.array(_FALSE)), "0", words)
    try:
        return words.cast(pa.float64())
    except pa.ArrowInvalid:
        return None


def without_missing(text: pa.Array) -> pa.Array:
    """Return cells without the spaces around them, null where one says that it is missing."""
    words = pc.utf8_trim_whitespace(text)
    missing = pc.is_in(pc.utf8_lower(words), pa.array(MISSING))
    return pc.if_else(missing, pa.scalar(None, pa.string()), words)


def shown(value: str) -> str:
    """Return a cell in quotes, the beginning of a long one."""
    return repr(value if len(value) <= _SHOWN else value[:_SHOWN] + "...")


def are_truths(text: pa.Array) -> bool:
    """Return whether all cells that are not missing say true or false, and some do."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    missing = pc.is_in(words, pa.array([*MISSING, None], pa.string()))
    told = pc.is_in(words, pa.array([*_TRUE, *_FALSE]))
    return bool(pc.any(told).as_py()) and bool(pc.all(pc.or_(missing, told)).as_py())


def share_of_numbers(text: pa.Array) -> float:
    """Return the share of numbers among the cells that are not missing; 0 if all are missing."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    there = words.filter(pc.invert(pc.is_in(words, pa.array([*MISSING, None], pa.string()))))
    if not len(there):
        return 0.0
    return float(pc.mean(pc.match_substring_regex(there, _NUMBER).cast(pa.uint8())).as_py())


def is_written(kind: pa.DataType) -> bool:
    """Return whether cells of this type are text or bytes."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string_view(kind)
    )


def _first_unreadable(text: pa.Array) -> tuple[int, str]:
    """Return the first cell that is not a number, by halving: a column may be long."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if parsed(text.slice(low, middle - low)) is None:
            high = middle
        else:
            low = middle
    return low, str(text[low].as_py())


def plain(column: Any) -> pa.Array:
    """Return the cells of a column as one array, without dictionary encoding."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combined, a column too large for one chunk still has several
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array
