"""What the cells of a column mean, as text and as numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from maxdisc.sources.places import SourceError
from maxdisc.sources.streams import decoded

#: Written like this, without regard to case, a number is missing.
MISSING = ("", "na", "n/a", "#n/a", "nan", "-nan", "null", "none", "?")
_TRUE, _FALSE = ("true",), ("false",)
_NUMBER = r"^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$"
_SHOWN = 40


def strings(column: Any, name: str, where: Callable[[int], str]) -> list[str | None]:
    """The cells of a column as text; None where there is nothing at all.

    Parameters
    ----------
    column : pyarrow array
        Of any type that can be written in one word.
    name : str
        The column's name, for messages.
    where : callable
        From a row of the column to how a message calls it.
    """
    array = _plain(column)
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
    """The array as strings; a cell that is not UTF-8 is named."""
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
    """The cells of a column in float64; true is 1, false is 0, and null where a number is missing.

    Parameters
    ----------
    column, name, where
        As for :func:`strings`.
    """
    array = _plain(column)
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
        shown = value if len(value) <= _SHOWN else value[:_SHOWN] + "..."
        raise SourceError(
            f"{where(row)}, column {name!r}: {shown!r} is not a number; "
            "correct it, or leave the column out with --exclude."
        )
    return values


def parsed(text: pa.Array) -> pa.Array | None:
    """Written numbers in float64, or None if some cell holds anything else.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from maxdisc.sources.cells import parsed
    >>> parsed(pa.array(["1", " 2.5e3", "", "n/a", "True"])).to_pylist()
    [1.0, 2500.0, None, None, 1.0]
    >>> parsed(pa.array(["1", "two"])) is None
    True
    """
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


def share_of_numbers(text: pa.Array) -> float:
    """How many of the cells that are not missing are numbers, as a share; 0 if all are missing.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from maxdisc.sources.cells import share_of_numbers
    >>> share_of_numbers(pa.array(["1", "2.5e3", "", "about 3", "-4"]))
    0.75
    """
    words = pc.utf8_lower(pc.utf8_trim_whitespace(text))
    there = words.filter(pc.invert(pc.is_in(words, pa.array([*MISSING, None], pa.string()))))
    if not len(there):
        return 0.0
    return float(pc.mean(pc.match_substring_regex(there, _NUMBER).cast(pa.uint8())).as_py())


def is_written(kind: pa.DataType) -> bool:
    """Whether cells of this type are text or bytes."""
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_string_view(kind)
    )


def _first_unreadable(text: pa.Array) -> tuple[int, str]:
    """The first cell that is not a number, by halving: a column may be long."""
    low, high = 0, len(text)
    while high - low > 1:
        middle = (low + high) // 2
        if parsed(text.slice(low, middle - low)) is None:
            high = middle
        else:
            low = middle
    return low, str(text[low].as_py())


def _plain(column: Any) -> pa.Array:
    """One array, without dictionary encoding."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(array, pa.ChunkedArray):  # combined, a column too large for one chunk still has several
        array = pa.concat_arrays(array.chunks)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array
