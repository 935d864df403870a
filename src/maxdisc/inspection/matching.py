"""Columns of a matrix matched by name with those of a model: in any order, some missing, others unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.safe_text import counted
from maxdisc.numerics.matrices import Booleans, Integers, Matrix, is_sparse

_SHOWN = 5


@dataclass(frozen=True, eq=False)
class MatchedColumns:
    """Positions of a model's features in a matrix; -1 for a missing one."""

    places: Integers  # (D,)
    kept: Booleans  # (D,)
    missing: list[str]
    dense: bool

    @classmethod
    def of(cls, fitted: ModelView, names: Sequence[str]) -> MatchedColumns:
        """Match the names of a matrix's columns; raise ``ValueError`` if no used feature is there."""
        first = fitted.classifier if fitted.before is None else fitted.before[0]
        known = getattr(first, "feature_names_in_", None)
        if known is None:
            raise ValueError("the model does not know its features by name: fit it on columns with names.")
        known = [str(name) for name in known]
        at = {name: place for place, name in enumerate(names)}
        if len(at) < len(names):
            twice = next(name for place, name in enumerate(names) if at[name] != place)
            raise ValueError(f"names of columns must be unique, and {twice!r} is there more than once.")
        places = np.array([at.get(name, -1) for name in known], dtype=np.intp)
        kept = np.zeros(len(known), dtype=np.bool_)
        kept[fitted.classifier.decision_.columns] = True
        missing = [known[j] for j in np.flatnonzero(kept & (places < 0))]
        if kept.any() and not (kept & (places >= 0)).any():
            such = f", such as {str(names[0])!r}" if len(names) else ""
            raise ValueError(
                f"none of the {counted(int(kept.sum()), 'feature')} that the model uses, such as "
                f"{missing[0]!r}, is among the {len(names):,} of the data{such}: are these the same kind of "
                "names?"
            )
        return cls(places, kept, missing, bool(missing) or fitted.schema is not None)

    @property
    def width(self) -> int:
        """The number of values of an aligned dense row; 0 if rows are sparse."""
        return len(self.places) if self.dense else 0

    @property
    def told(self) -> str:
        """A message about missing features; empty if there are none."""
        if not self.missing:
            return ""
        more = f" and {len(self.missing) - _SHOWN} more" if len(self.missing) > _SHOWN else ""
        are = "is missing, and is" if len(self.missing) == 1 else "are missing, and are"
        return (
            f"{len(self.missing):,} of the {counted(int(self.kept.sum()), 'feature')} that the model uses "
            f"{are} no evidence: {', '.join(self.missing[:_SHOWN])}{more}"
        )

    def aligned(self, X: Matrix) -> Matrix:
        """Return rows with the model's columns, shape (n, D); NaN where one is missing."""
        there = np.flatnonzero(self.places >= 0)
        if not is_sparse(X):
            X = np.asarray(X)
        picked = X[:, self.places[there]]
        if is_sparse(X) and not self.dense:
            picked = sp.csr_array(picked)
            shape = (X.shape[0], len(self.places))
            return sp.csr_array((picked.data, there[picked.indices], picked.indptr), shape=shape)
        out = np.full((X.shape[0], len(self.places)), np.nan, dtype=X.dtype if X.dtype.kind == "f" else float)
        out[:, there] = picked.toarray() if is_sparse(picked) else picked
        return out
