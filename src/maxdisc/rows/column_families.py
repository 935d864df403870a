"""Families of columns: requested ones, and the schema that follows from them and from the rows."""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.families import Bernoulli, Categorical, Family, find_family
from maxdisc.numerics.matrices import Booleans, Floats, Integers, column_name, is_sparse
from maxdisc.rows.family_choice import chosen_families, families_of_types
from maxdisc.rows.frames import BOOLEAN, NUMBER, WORD, Cells, Kinds, is_frame
from maxdisc.rows.row_sources import row_hashes
from maxdisc.rows.schema import Schema, require_finite, require_some_cells
from maxdisc.rows.table_totals import TableTotals


def is_categorical(family: Any) -> bool:
    """Return whether a family stands for categories."""
    return isinstance(family, Categorical) or (isinstance(family, str) and family == "categorical")


def takes_columns(X: Any, family: Any, categorical_features: Any, missing: str) -> bool:
    """Return whether each column gets its own family: in frames unless one family is given, or on request."""
    if is_sparse(X):
        require_one_family("X is sparse", family, categorical_features, missing)
        return False
    told_apart = takes_columns_of_frames(family, categorical_features, missing)
    automatic = isinstance(family, str) and family == "auto"
    asked = categorical_features is not None or missing == "informative"
    return told_apart and (is_frame(X) or asked or not automatic)


def require_one_family(
    why: str, family: Any, categorical_features: Any = None, missing: str = "ignore"
) -> None:
    """Raise ``ValueError`` for settings of single columns if rows have one family."""
    for is_asked, parameter in (
        (is_categorical(family), "family='categorical'"),
        (isinstance(family, Mapping), "a dict of families"),
        (categorical_features is not None, "categorical_features"),
        (missing == "informative", "missing='informative'"),
    ):
        if is_asked:
            raise ValueError(
                f"{why}, and {parameter} needs a frame or a dense array: convert X, or use one family of "
                "numbers for all columns."
            )


def takes_columns_of_frames(family: Any, categorical_features: Any, missing: str) -> bool:
    """Return whether each column of a frame gets its own family."""
    named = isinstance(family, Mapping) or is_categorical(family) or categorical_features is not None
    return named or missing == "informative" or (isinstance(family, str) and family == "auto")


def require_families(family: Any) -> None:
    """Raise ``ValueError`` unless a parameter names families."""
    for one in family.values() if isinstance(family, Mapping) else [family]:
        if not (isinstance(one, str) and one == "auto") and not is_categorical(one):
            find_family(one)


def settled_schema(
    X: Any,
    cells: Cells,
    names: npt.ArrayLike | None,
    family: Any,
    categorical_features: Any,
    informative: bool,
    rows: tuple[Integers, int, Floats] | None,
) -> Schema:
    """Return the families of all columns: as requested, else by types, values and held-out rows."""
    if rows is not None:
        require_finite(cells, names)
        require_some_cells(np.asarray(cells.missing().all(axis=0)), names)
    found, left = _asked(X, cells.kinds, names, family, categorical_features)
    numbers_ = left[cells.kinds[left] == NUMBER]
    if rows is None:
        # Types do not determine the family of numbers.
        found += [(one, np.intersect1d(at, left)) for one, at in families_of_types(cells)]
    else:
        found.append((Bernoulli(), left[cells.kinds[left] == BOOLEAN]))
        found += chosen_families(cells.numbers, numbers_, *rows)
    families, categories = _merged(found)
    return Schema.of(cells, families, categories, informative, numbers_ if rows is not None else None)


def schema_of_totals(
    totals: TableTotals,
    family: Any,
    categorical_features: Any,
    informative: bool,
    classes: npt.NDArray[np.generic],
) -> Schema:
    """Return the families of all columns from totals over all rows and a sample of them."""
    names, kinds = totals.names, totals.kinds
    require_some_cells((kinds != WORD) & (totals.count == 0), names)
    found, left = _asked(None, kinds, names, family, categorical_features)
    found.append((Bernoulli(), left[kinds[left] == BOOLEAN]))
    numbers_ = left[kinds[left] == NUMBER]
    codes = np.searchsorted(classes, np.asarray(totals.labels))
    # Their hashes know labels by name: in this order folds do not.
    order = np.argsort(row_hashes(totals.numbers), kind="stable")
    rows = (codes[order], len(classes), totals.weights[order])
    found += chosen_families(totals.numbers[order], numbers_, *rows, totals.values(numbers_))
    families, categories = _merged(found)
    lacking = np.flatnonzero(totals.lacking) if informative else np.empty(0, dtype=np.intp)
    return Schema(kinds, families, categories, totals.levels_of(categories), lacking, numbers_)


def _asked(
    X: Any, kinds: Kinds, names: npt.ArrayLike | None, family: Any, categorical_features: Any
) -> tuple[list[tuple[Family, Integers]], Integers]:
    """Return the requested families, including categories of text, and the remaining columns."""
    n_columns = len(kinds)
    categories = _picked(categorical_features, X, names, n_columns, "categorical_features")
    asked: list[tuple[Any, Booleans]] = [(Categorical(), categories)]
    settled = categories.copy()
    pairs = family.items() if isinstance(family, Mapping) else [(slice(None), family)]
    for selector, one in pairs:
        some = _picked(selector, X, names, n_columns, "family") & ~settled
        if not (isinstance(one, str) and one == "auto"):
            asked.append((Categorical() if is_categorical(one) else find_family(one), some))
            settled |= some
    words = kinds == WORD
    asked.append((Categorical(), words & ~settled))
    for one, some in asked:
        if not is_categorical(one) and (some & words).any():
            where = column_name(int(np.argmax(some & words)), names)
            raise ValueError(f"{where} holds text: its family is 'categorical', not {one.name!r}.")
    return [(one, np.flatnonzero(some)) for one, some in asked], np.flatnonzero(~(settled | words))


def _merged(found: list[tuple[Family, Integers]]) -> tuple[list[tuple[Family, Integers]], Integers]:
    """Return each family once, its columns in order; and the columns that are categories."""
    by_family: dict[Family, list[Integers]] = {}
    for family, at in found:
        by_family.setdefault(family, []).append(at)
    joined = {family: np.sort(np.concatenate(at)).astype(np.intp) for family, at in by_family.items()}
    categories = joined.pop(Categorical(), np.empty(0, dtype=np.intp))
    return [(family, at) for family, at in joined.items() if len(at)], categories


def _picked(selector: Any, X: Any, names: npt.ArrayLike | None, n_columns: int, what: str) -> Booleans:
    """Return which columns a name, a number, a slice, a mask, a function of X or a list of these picks."""
    out = np.zeros(n_columns, dtype=np.bool_)
    if selector is None:
        return out
    if isinstance(selector, slice):
        out[selector] = True
        return out
    if callable(selector):
        if X is None:
            raise ValueError(f"{what} is a function of a frame, and rows in batches have none: name columns.")
        selector = selector(X)
    if isinstance(selector, str | numbers.Integral) or not isinstance(selector, Collection | np.ndarray):
        selector = [selector]
    chosen = list(selector.tolist() if isinstance(selector, np.ndarray) else selector)
    if len(chosen) == n_columns and all(isinstance(one, bool | np.bool_) for one in chosen):
        return np.array(chosen, dtype=np.bool_)
    known = {} if names is None else {str(name): at for at, name in enumerate(np.asarray(names).tolist())}
    for one in chosen:
        number = isinstance(one, numbers.Integral) and not isinstance(one, bool | np.bool_)
        at = int(one) if number else known.get(one) if isinstance(one, str) else None
        if at is None or not -n_columns <= at < n_columns:
            shown = f"it has {', '.join(list(known)[:5])}" if known else f"it has {n_columns} columns"
            raise ValueError(f"{what} names a column {one!r} that X does not have ({shown}).")
        out[at] = True
    return out
