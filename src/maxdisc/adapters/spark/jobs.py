"""What workers do to pieces. They start by the dozen, so nothing here imports scikit-learn."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark import TaskContext

from maxdisc.adapters.spark.columns import Piece, in_form
from maxdisc.numerics.matrices import is_sparse
from maxdisc.rows.row_sources import ArrayRows


@dataclass(frozen=True, eq=False)
class Facts:
    """Summary of labelled rows (labels, counts, widths); summaries of two pieces add."""

    labels: Counter[Any]
    unlabelled: int
    first_unlabelled: str
    widths: tuple[int, int]
    n_rows: int
    n_dense: int
    n_cells: int
    partitions: frozenset[int]

    @classmethod
    def of(cls, piece: Piece) -> Facts:
        """Build from one piece."""
        X, task = piece.X, TaskContext.get()
        width = 0 if isinstance(X, list) else X.shape[1]
        return cls(
            Counter(piece.labels.tolist()),
            piece.unlabelled,
            piece.first_unlabelled,
            (width, width),
            len(piece.labels),
            piece.n_dense,
            0 if isinstance(X, list) else X.nnz if is_sparse(X) else X.size,
            frozenset([task.partitionId() if task else 0]),
        )

    def __add__(self, other: Facts) -> Facts:
        some = [facts for facts in (self, other) if facts.n_rows]
        return Facts(
            self.labels + other.labels,
            self.unlabelled + other.unlabelled,
            min(filter(None, (self.first_unlabelled, other.first_unlabelled)), default=""),
            (min((f.widths[0] for f in some), default=0), max((f.widths[1] for f in some), default=0)),
            self.n_rows + other.n_rows,
            self.n_dense + other.n_dense,
            self.n_cells + other.n_cells,
            self.partitions | other.partitions,
        )

    @property
    def sparse(self) -> bool:
        """How rows are to be taken: as they came, or, if they came as both, as takes less memory in all.

        That is the rule by which Spark's assembler settles it for single vectors.
        """
        if self.n_dense in (0, self.n_rows):
            return self.n_dense == 0
        return 1.5 * (self.n_cells + self.n_rows) < self.n_rows * self.widths[1]


def unchanged(piece: Piece) -> Piece:
    """Return a piece as it came."""
    return piece


def survey(piece: Piece, vectorizer: Any = None) -> list[Any]:
    """Return the facts of a piece and, of documents, how they use words."""
    return [Facts.of(piece), *([] if vectorizer is None else [vectorizer.totals(piece.X)])]


def vectorised(vectorizer: Any, piece: Piece) -> Piece:
    """Return a piece whose documents are rows of counts."""
    return replace(piece, X=vectorizer.transform(piece.X))


def labelled_rows(
    piece: Piece, classes: npt.NDArray[Any], sparse: bool, width: int, names: npt.ArrayLike | None
) -> ArrayRows:
    """Return the rows of a piece, with codes for labels."""
    codes = np.searchsorted(classes, piece.labels.astype(classes.dtype))
    return ArrayRows(in_form(piece.X, sparse, width), codes, len(classes), piece.weights, names)
