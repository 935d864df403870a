"""Cells of frames: numbers, truth values and categories.

pandas, polars and pyarrow are recognised without importing them: a caller that passes a frame has loaded its
library.
"""

from __future__ import annotations

import numbers
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix, column_name

#: Kinds of columns; EMPTY has missing cells only, and could be of any kind.
NUMBER, BOOLEAN, WORD, EMPTY = 0, 1, 2, 3
Kinds = npt.NDArray[np.int8]
Words = npt.NDArray[np.object_]

# Kinds of cells of an object column, one bit each, so that one reduction finds those of a column.
_TRUTH, _NUMBER, _TEXT, _OTHER = 1, 2, 4, 8
_CALLED = {_TRUTH: "truth values", _NUMBER: "numbers", _TEXT: "text"}


@dataclass(frozen=True, eq=False)
class Cells:
    """Cells of a frame by kind: numbers (N, D), NaN where missing, and coded words."""

    kinds: Kinds  # (D,)
    numbers: Floats  # (N, D)
    coded: Coded
    at: Integers  # (W,)

    @property
    def shape(self) -> tuple[int, int]:
        """N rows and D columns."""
        return int(self.numbers.shape[0]), int(self.numbers.shape[1])

    @property
    def words(self) -> Words:
        """The cells of the columns of words, shape (N, W); None where one is missing."""
        return self.coded.written()

    def __getitem__(self, rows: Any) -> Cells:
        return Cells(self.kinds, self.numbers[rows], self.coded[rows], self.at)

    def missing(self) -> Booleans:
        """Return which cells are missing, shape (N, D)."""
        out = np.isnan(self.numbers)
        out[:, self.at] = self.coded.codes < 0
        return out

    def worded(self, columns: Integers) -> Coded:
        """Return some columns as categories, shape (N, n): words as they are, numbers as they are written."""
        if np.array_equal(columns, self.at):
            return self.coded
        codes = np.full((len(self.numbers), len(columns)), -1, dtype=np.int32)
        is_word, words = self.kinds[columns] == WORD, self.coded.words
        codes[:, is_word] = self.coded.codes[:, np.searchsorted(self.at, columns[is_word])]
        if is_word.all():
            return Coded(codes, words)
        values, which = np.unique(self.numbers[:, columns[~is_word]], return_inverse=True)
        place = {word: at for at, word in enumerate(words.tolist())}
        there = [-1 if np.isnan(v) else place.setdefault(written_out(v), len(place)) for v in values]
        # A table of no rows, or of missing cells only, has no values.
        if len(there):
            codes[:, ~is_word] = np.array(there, dtype=np.int32)[which.reshape(len(codes), -1)]
        return Coded(codes, _objects(list(place)))


@dataclass(frozen=True, eq=False)
class Coded:
    """Categorical cells: codes (N, n), -1 where missing, into a list of distinct words."""

    codes: npt.NDArray[np.int32]  # (N, n)
    words: Words  # (U,)

    @classmethod
    def of(cls, cells: Words) -> Coded:
        """Build from cells (N, n), None where one is missing."""
        place = dict.fromkeys(cells.ravel(order="K").tolist())
        place.pop(None, None)
        words = _objects(list(place))
        lookup: dict[Any, Any] = dict(zip([*place, None], [*range(len(words)), -1], strict=True))
        return cls(_each(lookup.__getitem__, cells, np.int32), words)

    @property
    def shape(self) -> tuple[int, int]:
        """N rows and n columns."""
        return int(self.codes.shape[0]), int(self.codes.shape[1])

    def __getitem__(self, rows: Any) -> Coded:
        return Coded(self.codes[rows], self.words)

    def written(self) -> Words:
        """Return the cells themselves, shape (N, n)."""
        # The code of a missing cell is -1, the last.
        return _objects([*self.words.tolist(), None])[self.codes]

    def beside(self, other: Coded, order: Integers) -> Coded:
        """These columns and others of the same rows, in some order."""
        place = {word: at for at, word in enumerate(self.words.tolist())}
        moved = [place.setdefault(word, len(place)) for word in other.words.tolist()]
        codes = np.hstack([self.codes, np.array([*moved, -1], dtype=np.int32)[other.codes]])
        in_order = np.array_equal(order, np.arange(len(order)))
        return Coded(codes if in_order else codes[:, order], _objects(list(place)))


def _objects(values: list[Any]) -> Words:
    """Return a list as an array of objects."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def is_frame(X: Any) -> bool:
    """Return whether columns have types: a pandas or polars frame, or an Arrow table."""
    return _library(X) in _READERS


def column_names(X: Any) -> list[str] | None:
    """Return the names of a frame's columns; None for anything else."""
    library = _library(X)
    if library not in _READERS:
        return None
    return [str(name) for name in (X.column_names if library == "pyarrow" else X.columns)]


def require_distinct_names(X: Any) -> None:
    """Raise ``ValueError`` for a frame of which two columns have one name."""
    names = column_names(X)
    if names is None or len(set(names)) == len(names):
        return
    first, *others = [name for name, count in Counter(names).items() if count > 1]
    at = ", ".join(str(position) for position, name in enumerate(names) if name == first)
    more = f", and {len(others)} more names are repeated" if others else ""
    raise ValueError(f"column name {first!r} is repeated, in columns {at}{more}: rename the columns.")


def holds_numbers(X: Any) -> bool:
    """Return whether every column of a frame is of numbers."""
    kinds = cells_of(X, wanted=np.empty(0, dtype=np.intp)).kinds
    return is_frame(X) and bool((kinds == NUMBER).all())


def cells_of(X: Any, names: npt.ArrayLike | None = None, wanted: Integers | None = None) -> Cells:
    """Split a frame or array into numbers and words; words of columns outside ``wanted`` are not read."""
    library = _library(X)
    names = column_names(X) if names is None else names
    if library in _READERS:
        return _READERS[library](X, names, wanted)
    array = require_table(X)
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


def require_table(X: Any) -> npt.NDArray[Any]:
    """Return an array with rows and columns; raise ``ValueError`` for anything else, frames aside."""
    array = np.asarray(X)
    if array.ndim != 2:
        raise ValueError(
            f"X must be a table with rows and columns, got {array.ndim} dimensions. Reshape your data: "
            "X.reshape(1, -1) is one row, X.reshape(-1, 1) one column."
        )
    if array.dtype.kind == "c":
        raise ValueError("Complex data not supported: give real and imaginary parts as columns.")
    return array


def _library(X: Any) -> str:
    """Return the library whose frame this is, if it is one."""
    kind = type(X)
    if kind.__name__ not in ("DataFrame", "Table"):
        return ""
    return kind.__module__.partition(".")[0]


def _of_pandas(X: Any, names: npt.ArrayLike | None, wanted: Integers | None) -> Cells:
    dtypes = X.dtypes.to_numpy()
    kinds = np.array([_kind_of_letter(dtype.kind) for dtype in dtypes], dtype=np.int8)
    _require_known(kinds, dtypes, names)
    # By the name of the type: to compare such types takes long, as they hold their categories.
    declared = np.array([type(dtype).__name__ == "CategoricalDtype" for dtype in dtypes], dtype=np.bool_)
    asked = _asked(kinds, wanted)
    kinds[(kinds == WORD) & ~declared & ~asked] = EMPTY  # they could hold anything
    plain, categories = np.flatnonzero(kinds < WORD), np.flatnonzero(declared & asked)
    others = np.flatnonzero((kinds == WORD) & ~declared)
    # Only pandas' own types have a sign for missing cells, and to look for it takes as long as to read.
    own = not all(issubclass(kind, np.dtype) for kind in set(map(type, dtypes[plain])))
    values = X.iloc[:, plain].to_numpy(dtype=np.float64, **({"na_value": np.nan} if own else {}))
    cells = _put_together(kinds, values, plain, _objects_of_pandas(X, dtypes, others), others, names)
    if not len(categories):
        return cells
    found, at = _categories_of_pandas(X, categories, names), np.concatenate([cells.at, categories])
    order = np.argsort(at, kind="stable")
    return Cells(cells.kinds, cells.numbers, cells.coded.beside(found, order), at[order])


def _asked(kinds: Kinds, wanted: Integers | None) -> Booleans:
    """Return which columns are to be read, shape (D,)."""
    out = np.full(len(kinds), wanted is None, dtype=np.bool_)
    out[[] if wanted is None else wanted] = True
    return out


def _arrays_of_pandas(X: Any, columns: Integers) -> Iterator[Any]:
    """Return the arrays of single columns, which pandas keeps apart where they are of types of its own."""
    # What it uses itself; to make a Series of each column takes ten times as long.
    column = getattr(X, "_get_column_array", None) or (lambda at: X.iloc[:, at].array)
    return map(column, columns.tolist())


def _objects_of_pandas(X: Any, dtypes: Any, others: Integers) -> Words | Coded:
    """Cells of columns of text and objects; coded, if text and missing cells are all there is."""
    if all(isinstance(dtype, np.dtype) for dtype in dtypes[others]):
        objects = X.iloc[:, others].to_numpy(dtype=object)
    else:
        objects = np.empty((len(X), len(others)), dtype=object, order="F")
        for place, array in enumerate(_arrays_of_pandas(X, others)):
            objects[:, place] = np.asarray(array, dtype=object)
    turned = objects.flags.f_contiguous and not objects.flags.c_contiguous
    flat = (objects.T if turned else objects).ravel()
    try:
        codes, words = sys.modules["pandas"].factorize(flat)
    except TypeError:
        return objects  # a list, say, which is no category
    if not all(type(word) is str for word in words):
        return objects  # numbers that are equal, such as 1 and True, need not be the same
    codes = codes.astype(np.int32).reshape(objects.shape[::-1] if turned else objects.shape)
    return Coded(codes.T if turned else codes, np.asarray(words, dtype=object))


def _categories_of_pandas(X: Any, columns: Integers, names: npt.ArrayLike | None) -> Coded:
    """Cells of columns whose categories are declared."""
    codes = np.empty((len(X), len(columns)), dtype=np.int32, order="F")
    place: dict[str, int] = {}
    known: dict[tuple[Any, ...], npt.NDArray[np.int32]] = {}
    for at, held in enumerate(_arrays_of_pandas(X, columns)):
        called = tuple(held.categories.tolist())
        # Equal ones are written alike, but for 1, 1.0 and True, which are equal, too.
        key = (*called, *map(type, called))
        if key not in known:
            written = _written(held.categories, int(columns[at]), names).tolist()
            there = [-1 if word is None else place.setdefault(word, len(place)) for word in written]
            known[key] = np.array(there, dtype=np.int32)
        # The code of a missing cell is -1, the last.
        np.take(known[key], held.codes, out=codes[:, at], mode="wrap")
    return Coded(codes, _objects(list(place)))


def _of_polars(X: Any, names: npt.ArrayLike | None, wanted: Integers | None) -> Cells:
    polars, dtypes = sys.modules["polars"], list(X.schema.values())

    def kind(dtype: Any) -> int:
        if dtype == polars.Boolean:
            return BOOLEAN
        if dtype in (polars.String, polars.Object) or str(dtype).startswith(("Categorical", "Enum")):
            return WORD
        return NUMBER if dtype.is_numeric() else EMPTY if dtype == polars.Null else -1

    kinds = np.array([kind(dtype) for dtype in dtypes], dtype=np.int8)
    _require_known(kinds, dtypes, names)
    plain, others = np.flatnonzero(kinds < WORD), np.flatnonzero((kinds == WORD) & _asked(kinds, wanted))
    columns = np.array(X.columns, dtype=object)
    values, objects = np.empty((len(X), 0)), np.empty((len(X), 0), dtype=object)
    if len(plain):  # a frame of no columns has no rows
        values = X.select(columns[plain].tolist()).cast(polars.Float64).to_numpy()
    if len(others):
        held = [name for name in columns[others].tolist() if X.schema[name] != polars.Object]
        objects = X.select(columns[others].tolist()).cast(dict.fromkeys(held, polars.String)).to_numpy()
    return _put_together(
        kinds, values.reshape(len(X), len(plain)), plain, objects.astype(object), others, names
    )


def _of_arrow(X: Any, names: npt.ArrayLike | None, wanted: Integers | None) -> Cells:
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
    plain, others = np.flatnonzero(kinds < WORD), np.flatnonzero((kinds == WORD) & _asked(kinds, wanted))

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


_READERS: dict[str, Callable[[Any, Any, Any], Cells]] = {
    "pandas": _of_pandas,
    "polars": _of_polars,
    "pyarrow": _of_arrow,
}


def _kind_of_letter(letter: str) -> int:
    """Return what columns of a numpy kind hold; -1 for dates, durations and complex numbers."""
    return BOOLEAN if letter == "b" else NUMBER if letter in "iuf" else WORD if letter in "OUST" else -1


def _require_known(kinds: Kinds, dtypes: Any, names: npt.ArrayLike | None) -> None:
    if (kinds < 0).any():
        column = int(np.argmin(kinds))
        raise ValueError(
            f"{column_name(column, names)} holds {dtypes[column]}, neither numbers nor categories: turn it "
            "into one or the other, or drop it."
        )


def _written(categories: Any, column: int, names: npt.ArrayLike | None) -> Words:
    """Return the categories of a column as text, and None after the last."""
    values = np.full(len(categories) + 1, None, dtype=object)
    values[:-1] = np.asarray(categories, dtype=object)
    bits = _bits_of(values[:, None])
    _require_one_kind(bits.max(axis=0) & _OTHER, values[:, None], bits, np.array([column]), names)
    unwritten = bits[:, 0] & (_NUMBER | _TRUTH) > 0
    values[unwritten] = [written_out(value) for value in values[unwritten]]
    return values


def _put_together(
    kinds: Kinds,
    values: Floats,
    plain: Integers,
    objects: Words | Coded | None,
    others: Integers | None,
    names: npt.ArrayLike | None,
) -> Cells:
    """Cells from columns of numbers and columns of objects, which may be of numbers too."""
    numbers_ = values
    if len(plain) < len(kinds):
        numbers_ = np.empty((len(values), len(kinds)), order="F" if values.flags.f_contiguous else "C")
        numbers_[:, in_a_row(np.setdiff1d(np.arange(len(kinds)), plain))] = np.nan
        numbers_[:, in_a_row(plain)] = values
    if objects is None or others is None or not len(others):
        none = Coded(np.empty((len(values), 0), dtype=np.int32), _objects([]))
        return Cells(kinds, numbers_, none, np.empty(0, dtype=np.intp))
    if isinstance(objects, Coded):
        there = (objects.codes >= 0).any(axis=0)
        kinds = kinds.copy()
        kinds[others] = np.where(there, WORD, EMPTY)
        coded = objects if there.all() else Coded(objects.codes[:, there], objects.words)
        return Cells(kinds, numbers_, coded, others[there])
    kinds, bits = kinds.copy(), _bits_of(objects)
    held = np.bitwise_or.reduce(bits, axis=0)
    _require_one_kind(held, objects, bits, others, names)
    words = held == _TEXT
    kinds[others] = np.select([words, held == _NUMBER, held == _TRUTH], [WORD, NUMBER, BOOLEAN], EMPTY)
    plain_objects = ~words & (held > 0)
    cells = np.where(bits[:, plain_objects] > 0, objects[:, plain_objects], np.nan)
    numbers_[:, others[plain_objects]] = cells.astype(np.float64)
    out = objects if words.all() else objects[:, words]
    lost = (bits if words.all() else bits[:, words]) == 0
    if lost.any():
        out = out.copy()
        out[lost] = None
    return Cells(kinds, numbers_, Coded.of(out), others[words])


def in_a_row(columns: Integers) -> slice | Integers:
    """Increasing columns as a range, if they are one: what is cut by a range is not copied."""
    if len(columns) and columns[-1] - columns[0] == len(columns) - 1:
        return slice(int(columns[0]), int(columns[-1]) + 1)
    return columns


def _each(function: Callable[[Any], Any], cells: Words, dtype: Any) -> npt.NDArray[Any]:
    """Apply a function to every cell, in the order of memory."""
    turned = cells.flags.f_contiguous and not cells.flags.c_contiguous
    flat = (cells.T if turned else cells).ravel().tolist()
    out = np.fromiter(map(function, flat), dtype, count=len(flat))
    return out.reshape(cells.shape[::-1]).T if turned else out.reshape(cells.shape)


def _bits_of(objects: Words) -> npt.NDArray[np.int8]:
    """Return the kind of each cell, by its type if that determines it."""
    found = set(map(type, objects.ravel(order="K").tolist()))
    if found <= {str}:
        return np.full(objects.shape, _TEXT, dtype=np.int8)
    if found <= _BITS.keys():
        bits = _each(lambda value: _BITS[type(value)], objects, np.int8)
        # Of floats, NaN is a missing cell.
        if float in found:
            some = bits == _NUMBER
            held = objects[some]
            bits[some] = np.where(held == held, _NUMBER, 0)
        return bits
    with np.errstate(invalid="ignore"):  # to compare NaN is enough for numpy to speak up
        return _each(_bits, objects, np.int8)


_BITS = {str: _TEXT, bool: _TRUTH, float: _NUMBER, int: _NUMBER, type(None): 0}


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
    objects: Words,
    bits: npt.NDArray[np.int8],
    at: Integers,
    names: npt.ArrayLike | None,
) -> None:
    wrong = ~np.isin(held, [0, _TRUTH, _NUMBER, _TEXT])
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
    """Return a category that is no text as text: 3, 3.0 and True as '3', '3' and 'True'."""
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**63 else repr(number)


@dataclass(frozen=True, eq=False)
class Levels:
    """Levels of all categorical columns in one sorted list of (column, word) keys."""

    words: Words  # (W,)
    keys: Integers  # (E,)

    @classmethod
    def of(cls, cells: Coded | Words, at: Integers) -> Levels:
        """Return the levels that cells (N, n) of columns ``at`` (n,) have."""
        coded = cells if isinstance(cells, Coded) else Coded.of(cells)
        there = coded.codes >= 0
        used = np.bincount(coded.codes[there], minlength=len(coded.words)) > 0
        words = _objects(sorted(coded.words[used].tolist()))
        places = cls(words, np.empty(0, dtype=np.intp))._places(coded)
        if len(at) * len(words) > 4 * places.size:
            columns = np.broadcast_to(at, places.shape)
            return cls(words, np.unique(columns[there] * len(words) + places[there]))
        # What is missing has places in the table of all pairs, too.
        table = np.zeros((len(at), len(words) + 2), dtype=np.bool_)
        table.ravel()[places + np.arange(len(at)) * table.shape[1]] = True
        column, place = np.nonzero(table[:, : len(words)])
        return cls(words, np.sort(at[column] * len(words) + place))

    @property
    def columns(self) -> Integers:
        """The column that each level belongs to, shape (E,)."""
        return self.keys // max(len(self.words), 1)

    @property
    def names(self) -> Words:
        """The name of each level, shape (E,)."""
        return self.words[self.keys % max(len(self.words), 1)] if len(self.keys) else self.words[:0]

    def joined(self, other: Levels) -> Levels:
        """Return the levels of both."""
        words = np.array(sorted({*self.words, *other.words}), dtype=object)
        keys = [levels.columns * len(words) + _found(words, levels.names) for levels in (self, other)]
        return Levels(words, np.unique(np.concatenate(keys)))

    def positions(self, other: Levels) -> Integers:
        """Return where among these levels those of another list are, which must all be here."""
        return np.searchsorted(self.keys, other.columns * len(self.words) + _found(self.words, other.names))

    def indicators(self, cells: Coded | Words, at: Integers) -> tuple[Matrix, Booleans]:
        """Return one-hot indicators (N, E), sparse, and which cells have an unseen level."""
        places = self._places(cells if isinstance(cells, Coded) else Coded.of(cells))
        found = self._keys_of(places, at)
        hit = found >= 0
        if hit.all():
            indices, indptr = found.ravel(), np.arange(len(places) + 1) * places.shape[1]
        else:
            indices, indptr = found[hit], np.r_[0, np.cumsum(hit.sum(axis=1))]
        shape = (len(places), len(self.keys))
        matrix = sp.csr_array((np.ones(len(indices)), indices, indptr), shape=shape)
        matrix.sort_indices()
        return matrix, ~hit & (places <= len(self.words))

    def _keys_of(self, places: npt.NDArray[np.int32], at: Integers) -> Integers:
        """Return where among the keys those of columns ``at`` with words at ``places`` are; -1 if nowhere."""
        n_words = len(self.words)
        if not len(self.keys):
            return np.full(places.shape, -1, dtype=np.int32)
        if len(at) * n_words > 4 * places.size:
            return np.where(places < n_words, self._looked_up(at * n_words + places), -1)
        # A table of all pairs; what is no level has places in it, too.
        table = np.full((len(at), n_words + 2), -1, dtype=np.int32)
        table[:, :n_words] = self._looked_up(at[:, None] * n_words + np.arange(n_words))
        return table.ravel()[places + np.arange(len(at)) * table.shape[1]]

    def _looked_up(self, keys: Integers) -> Integers:
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return np.where(self.keys[found] == keys, found, -1)

    def _places(self, coded: Coded) -> npt.NDArray[np.int32]:
        """Return the position of each cell's word among W; W for unknown, W + 1 for missing cells."""
        n_words = len(self.words)
        place = {word: at for at, word in enumerate(self.words.tolist())}
        there = [*(place.get(word, n_words) for word in coded.words.tolist()), n_words + 1]
        return np.array(there, dtype=np.int32)[coded.codes]


def _found(words: Words, some: Words) -> Integers:
    place = {word: at for at, word in enumerate(words)}
    return np.fromiter((place[word] for word in some), dtype=np.intp, count=len(some))
