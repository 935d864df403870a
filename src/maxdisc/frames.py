"""Frames taken apart: which columns hold numbers, truth values or categories, and their cells.

pandas, polars and pyarrow are recognised, never imported: whoever passes a frame has its library loaded.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.matrices import Booleans, Floats, Integers, Matrix, column_name

#: What the cells of a column are; EMPTY is a column of nothing, which could be any.
NUMBER, BOOLEAN, WORD, EMPTY = 0, 1, 2, 3
Kinds = npt.NDArray[np.int8]
Words = npt.NDArray[np.object_]

# What a cell of an object column can be, one bit each, so that a column's are found by one reduction.
_TRUTH, _NUMBER, _TEXT, _OTHER = 1, 2, 4, 8
_CALLED = {_TRUTH: "truth values", _NUMBER: "numbers", _TEXT: "text"}


@dataclass(frozen=True, eq=False)
class Cells:
    """A frame by what its columns hold.

    Parameters
    ----------
    kinds : ndarray of shape (D,)
        NUMBER, BOOLEAN, WORD or EMPTY.
    numbers : ndarray of shape (N, D)
        Numbers and truth values; NaN where a cell is missing, and in columns of words.
    words : ndarray of shape (N, W)
        The cells of the columns of words; None where one is missing.
    at : ndarray of shape (W,)
        Which columns these are.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.frames import cells_of
    >>> cells = cells_of(np.array([[1.5, "red"], [None, "blue"]], dtype=object))
    >>> cells.kinds.tolist(), cells.words.tolist()
    ([0, 2], [['red'], ['blue']])
    """

    kinds: Kinds
    numbers: Floats
    words: Words
    at: Integers

    @property
    def shape(self) -> tuple[int, int]:
        """N rows and D columns."""
        return int(self.numbers.shape[0]), int(self.numbers.shape[1])

    def __getitem__(self, rows: Any) -> Cells:
        return Cells(self.kinds, self.numbers[rows], self.words[rows], self.at)

    def missing(self) -> Booleans:
        """Which cells are missing, shape (N, D)."""
        out = np.isnan(self.numbers)
        out[:, self.at] = self.words == None  # noqa: E711  # elementwise
        return out

    def worded(self, columns: Integers) -> Words:
        """Some columns as categories, shape (N, n): words as they are, numbers as they are written."""
        out = np.empty((len(self.numbers), len(columns)), dtype=object)
        is_word = self.kinds[columns] == WORD
        out[:, is_word] = self.words[:, np.searchsorted(self.at, columns[is_word])]
        values, which = np.unique(self.numbers[:, columns[~is_word]], return_inverse=True)
        written = np.array([None if np.isnan(v) else written_out(v) for v in values], dtype=object)
        # A table of no rows, or of missing cells only, has no values.
        out[:, ~is_word] = written[which.reshape(out.shape[0], -1)] if len(written) else None
        return out


def is_frame(X: Any) -> bool:
    """Whether columns may have types of their own: a frame of pandas or polars, or a table of Arrow."""
    return _library(X) in _READERS


def column_names(X: Any) -> list[str] | None:
    """The names of a frame's columns; None for anything else."""
    library = _library(X)
    if library not in _READERS:
        return None
    return [str(name) for name in (X.column_names if library == "pyarrow" else X.columns)]


def cells_of(X: Any, names: npt.ArrayLike | None = None) -> Cells:
    """Take a frame, or an array of objects or numbers, apart.

    Parameters
    ----------
    X : frame or array of shape (N, D)
        Missing cells may be None, NaN, NaT, NA or null.
    names : array-like of str, optional
        Names of the columns, for messages.

    Returns
    -------
    Cells
        Of the same shape.
    """
    library = _library(X)
    names = column_names(X) if names is None else names
    if library in _READERS:
        return _READERS[library](X, names)
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, got {array.ndim} dimensions.")
    if array.dtype.kind in "fiub":
        kinds = np.full(array.shape[1], BOOLEAN if array.dtype.kind == "b" else NUMBER, dtype=np.int8)
        return _put_together(kinds, array.astype(np.float64), np.arange(array.shape[1]), None, None, names)
    return _put_together(
        np.full(array.shape[1], WORD, dtype=np.int8),
        np.empty((len(array), 0)),
        np.empty(0, dtype=np.intp),
        array.astype(object),
        np.arange(array.shape[1]),
        names,
    )


def _library(X: Any) -> str:
    """The library whose frame this is, if it is one."""
    kind = type(X)
    if kind.__name__ not in ("DataFrame", "Table"):
        return ""
    return kind.__module__.partition(".")[0]


def _of_pandas(X: Any, names: npt.ArrayLike | None) -> Cells:
    dtypes = X.dtypes.to_numpy()
    kind_of = {dtype: _kind_of_letter(dtype.kind) for dtype in set(dtypes)}
    kinds = np.array([kind_of[dtype] for dtype in dtypes], dtype=np.int8)
    _require_known(kinds, dtypes, names)
    plain, others = np.flatnonzero(kinds < WORD), np.flatnonzero(kinds == WORD)
    values = X.iloc[:, plain].to_numpy(dtype=np.float64, na_value=np.nan)
    objects = X.iloc[:, others].to_numpy(dtype=object)
    categories = {dtype: str(dtype) == "category" for dtype in set(dtypes[others])}
    declared = others[np.array([categories[dtype] for dtype in dtypes[others]], dtype=np.bool_)]
    return _put_together(kinds, values, plain, objects, others, names, declared)


def _of_polars(X: Any, names: npt.ArrayLike | None) -> Cells:
    polars, dtypes = sys.modules["polars"], list(X.schema.values())

    def kind(dtype: Any) -> int:
        if dtype == polars.Boolean:
            return BOOLEAN
        if dtype in (polars.String, polars.Object) or str(dtype).startswith(("Categorical", "Enum")):
            return WORD
        return NUMBER if dtype.is_numeric() else EMPTY if dtype == polars.Null else -1

    kinds = np.array([kind(dtype) for dtype in dtypes], dtype=np.int8)
    _require_known(kinds, dtypes, names)
    plain, others = np.flatnonzero(kinds < WORD), np.flatnonzero(kinds == WORD)
    columns = np.array(X.columns, dtype=object)
    values = X.select(columns[plain].tolist()).cast(polars.Float64).to_numpy()
    held = [name for name in columns[others].tolist() if X.schema[name] != polars.Object]
    objects = X.select(columns[others].tolist()).cast(dict.fromkeys(held, polars.String)).to_numpy()
    return _put_together(kinds, values.reshape(len(X), -1), plain, objects.astype(object), others, names)


def _of_arrow(X: Any, names: npt.ArrayLike | None) -> Cells:
    types = sys.modules["pyarrow"].types
    arrow, dtypes = sys.modules["pyarrow"], list(X.schema.types)

    def kind(dtype: Any) -> int:
        if types.is_dictionary(dtype):
            return WORD
        if types.is_boolean(dtype):
            return BOOLEAN
        if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
            return NUMBER
        words = types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype)
        return WORD if words else EMPTY if types.is_null(dtype) else -1

    kinds = np.array([kind(dtype) for dtype in dtypes], dtype=np.int8)
    _require_known(kinds, dtypes, names)
    plain, others = np.flatnonzero(kinds < WORD), np.flatnonzero(kinds == WORD)

    def side_by_side(columns: Integers, to: Any, dtype: Any) -> Any:
        out = np.empty((X.num_rows, len(columns)), dtype=dtype)
        for place, column in enumerate(columns.tolist()):  # Arrow keeps columns apart
            array = X.column(column)
            if types.is_boolean(array.type):
                array = array.cast(arrow.uint8())
            array = array.cast(array.type.value_type if types.is_dictionary(array.type) else array.type)
            out[:, place] = array.cast(to, safe=False).to_numpy(zero_copy_only=False)
        return out

    values = side_by_side(plain, arrow.float64(), np.float64)
    objects = side_by_side(others, arrow.string(), object)
    return _put_together(kinds, values, plain, objects, others, names)


_READERS: dict[str, Callable[[Any, Any], Cells]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}


def _kind_of_letter(letter: str) -> int:
    """What columns of a numpy kind hold; -1 for dates, durations and complex numbers."""
    return BOOLEAN if letter == "b" else NUMBER if letter in "iuf" else WORD if letter in "OUST" else -1


def _require_known(kinds: Kinds, dtypes: Any, names: npt.ArrayLike | None) -> None:
    if (kinds < 0).any():
        column = int(np.argmin(kinds))
        raise ValueError(
            f"{column_name(column, names)} holds {dtypes[column]}, neither numbers nor categories: turn it "
            "into one or the other, or drop it."
        )


def _put_together(
    kinds: Kinds,
    values: Floats,
    plain: Integers,
    objects: Words | None,
    others: Integers | None,
    names: npt.ArrayLike | None,
    declared: Integers | None = None,
) -> Cells:
    """Cells from columns of numbers and columns of objects, which may be of numbers too."""
    kinds, numbers_ = kinds.copy(), np.full((len(values), len(kinds)), np.nan)
    numbers_[:, plain] = values
    if objects is None or others is None or not len(others):
        return Cells(kinds, numbers_, np.empty((len(values), 0), dtype=object), np.empty(0, dtype=np.intp))
    with np.errstate(invalid="ignore"):  # to compare NaN is enough for numpy to speak up
        bits = np.asarray(np.frompyfunc(_bits, 1, 1)(objects), dtype=np.int8).reshape(objects.shape)
    held = np.bitwise_or.reduce(bits, axis=0)
    is_category = np.isin(others, [] if declared is None else declared)
    _require_one_kind(held, is_category, objects, bits, others, names)
    words = (held == _TEXT) | is_category
    kinds[others] = np.select([words, held == _NUMBER, held == _TRUTH], [WORD, NUMBER, BOOLEAN], EMPTY)
    plain_objects = ~words & (held > 0)
    cells = np.where(bits[:, plain_objects] > 0, objects[:, plain_objects], np.nan)
    numbers_[:, others[plain_objects]] = cells.astype(np.float64)
    there = bits[:, words] > 0
    kept = objects[:, words]
    out = np.full(kept.shape, None, dtype=object)
    out[there] = kept[there]
    unwritten = there & (bits[:, words] != _TEXT)
    if unwritten.any():
        out[unwritten] = [written_out(value) for value in kept[unwritten]]
    return Cells(kinds, numbers_, out, others[words])


def _bits(value: Any) -> int:
    if isinstance(value, str):
        return _TEXT
    if isinstance(value, bool | np.bool_):
        return _TRUTH
    if isinstance(value, numbers.Real | Decimal):
        return 0 if value != value else _NUMBER
    # pandas.NA and NaT, which this library does not import.
    return 0 if value is None or type(value).__name__ in ("NAType", "NaTType") else _OTHER


def _require_one_kind(
    held: npt.NDArray[np.int8],
    is_category: Booleans,
    objects: Words,
    bits: npt.NDArray[np.int8],
    at: Integers,
    names: npt.ArrayLike | None,
) -> None:
    single = np.isin(held, [0, _TRUTH, _NUMBER, _TEXT])
    wrong = ~single & ~(is_category & (held < _OTHER))
    if not wrong.any():
        return
    place = int(np.argmax(wrong))
    where = column_name(int(at[place]), names)
    if held[place] & _OTHER:
        value = objects[np.argmax(bits[:, place] == _OTHER), place]
        raise ValueError(
            f"{where} holds a {type(value).__name__}, such as {str(value)[:40]!r}, neither a number nor a "
            "category: turn it into one or the other, or drop it."
        )
    found = [
        f"{called} such as {objects[np.argmax(bits[:, place] == bit), place]!r}"
        for bit, called in _CALLED.items()
        if held[place] & bit
    ]
    raise ValueError(f"{where} mixes {' and '.join(found)}: make it all of one kind.")


def written_out(value: Any) -> str:
    """A category that is no text as text: 3, 3.0 and True as '3', '3' and 'True'."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of columns of categories, in one sorted list of pairs: no column has a table of its own.

    Parameters
    ----------
    words : ndarray of shape (W,)
        Every word that is a level of some column, sorted.
    keys : ndarray of shape (E,)
        ``column * W + place of the word``, sorted: the columns of the matrix of indicators.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.frames import Levels
    >>> cells = np.array([["red", "up"], ["blue", "up"], [None, "down"]], dtype=object)
    >>> levels = Levels.of(cells, np.array([0, 3]))
    >>> levels.columns.tolist(), levels.names.tolist()
    ([0, 0, 3, 3], ['blue', 'red', 'down', 'up'])
    >>> levels.indicators(cells, np.array([0, 3]))[0].toarray().astype(int).tolist()
    [[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 0]]
    """

    words: Words
    keys: Integers

    @classmethod
    def of(cls, cells: Words, at: Integers) -> Levels:
        """The levels that cells (N, n) of columns ``at`` (n,) have."""
        flat = cells.ravel()
        words = np.array(sorted({word for word in flat if word is not None}), dtype=object)
        known = cls(words, np.empty(0, dtype=np.intp))
        places, columns = known._places(cells), np.broadcast_to(at, cells.shape)
        there = places >= 0
        return cls(words, np.unique(columns[there] * len(words) + places[there]))

    @property
    def columns(self) -> Integers:
        """The column that each level belongs to, shape (E,)."""
        return self.keys // max(len(self.words), 1)

    @property
    def names(self) -> Words:
        """What each level is called, shape (E,)."""
        return self.words[self.keys % max(len(self.words), 1)] if len(self.keys) else self.words[:0]

    def joined(self, other: Levels) -> Levels:
        """The levels of both."""
        words = np.array(sorted({*self.words, *other.words}), dtype=object)
        keys = [levels.columns * len(words) + _found(words, levels.names) for levels in (self, other)]
        return Levels(words, np.unique(np.concatenate(keys)))

    def positions(self, other: Levels) -> Integers:
        """Where among these levels those of another list are, which must all be here."""
        return np.searchsorted(self.keys, other.columns * len(self.words) + _found(self.words, other.names))

    def indicators(self, cells: Words, at: Integers) -> tuple[Matrix, Booleans]:
        """A sparse (N, E) matrix with a 1 for the level of each cell, and which cells have one never seen."""
        places = self._places(cells)
        keys = np.where(places >= 0, at * len(self.words) + places, -1)
        found = np.minimum(np.searchsorted(self.keys, keys), max(len(self.keys) - 1, 0))
        hit = (places >= 0) & (self.keys[found] == keys) if len(self.keys) else np.zeros(keys.shape, bool)
        indptr = np.r_[0, np.cumsum(hit.sum(axis=1))]
        indices = found[hit]
        shape = (len(cells), len(self.keys))
        matrix = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
        matrix.sort_indices()
        return matrix, ~hit & (cells != None)  # noqa: E711  # elementwise

    def _places(self, cells: Words) -> Integers:
        """The place of each cell's word in the list of all; -1 if it has none."""
        place = {word: at for at, word in enumerate(self.words)}
        flat = (place.get(word, -1) for word in cells.ravel())
        return np.fromiter(flat, dtype=np.intp, count=cells.size).reshape(cells.shape)


def _found(words: Words, some: Words) -> Integers:
    place = {word: at for at, word in enumerate(words)}
    return np.fromiter((place[word] for word in some), dtype=np.intp, count=len(some))
