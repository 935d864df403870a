"""From an engine of labelled pieces to a fitted model: what is looked up first, then ``fit_rows``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from maxdisc.adapters.spark.columns import Piece, in_form
from maxdisc.adapters.spark.engine import MOST_BYTES, FrameEngine
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.matrices import is_sparse
from maxdisc.partitions import PartitionedRows
from maxdisc.rows import ArrayRows
from maxdisc.text import TermFrequencyVectorizer


@dataclass(frozen=True, eq=False)
class Facts:
    """What is known of labelled rows once all were seen; facts of two pieces add.

    Parameters
    ----------
    labels : Counter
        How many rows have which label.
    unlabelled : int
        How many rows have none.
    first_unlabelled : str
        How a message calls one of those, where it can.
    widths : tuple of int
        The least and the greatest number of features of a piece.
    n_rows, n_dense, n_cells : int
        Rows, how many of them came as dense vectors, and how many cells are stored.
    partitions : frozenset of int
        Those that have rows.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.adapters.spark.columns import Piece
    >>> from maxdisc.adapters.spark.fitting import Facts
    >>> some, more = Piece(np.eye(2), np.array(["a", "b"])), Piece(np.eye(2), np.array(["b", "b"]))
    >>> (Facts.of(some) + Facts.of(more)).labels
    Counter({'b': 3, 'a': 1})
    """

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
        """Of one piece."""
        from pyspark import TaskContext

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


def fit_pieces(
    engine: FrameEngine,
    classifier: MaxDiscClassifier,
    vectorizer: TermFrequencyVectorizer | None,
    classes_of: Callable[[Facts], npt.NDArray[Any]],
    names: npt.ArrayLike | None = None,
) -> Any:
    """Fit a classifier to the pieces of an engine, after a vectorizer if there is one.

    Parameters
    ----------
    engine : FrameEngine
        Whose pieces are :class:`maxdisc.adapters.spark.columns.Piece`.
    classifier : MaxDiscClassifier
        To be fitted in place.
    vectorizer : TermFrequencyVectorizer or None
        For documents; its vocabulary is learnt by a pass of its own.
    classes_of : callable
        From what is known of the rows to the classes, sorted; refuses what cannot be used.
    names : array_like of str, shape (D,), optional
        What messages call the columns.

    Returns
    -------
    MaxDiscClassifier or Pipeline
        Fitted.
    """
    if vectorizer is not None:
        facts, totals = engine.added(partial(_survey, vectorizer=vectorizer))
        classes = classes_of(facts)
        vectorizer.fit_totals(totals)
        kept = engine.kept(partial(_vectorised, vectorizer))
    else:
        kept = engine.kept(_unchanged)
    try:
        if vectorizer is None:
            # Facts are few: no tree is needed.
            (facts,) = replace(kept, n_partitions=1).added(_survey)
            classes = classes_of(facts)
        rows_of = partial(
            _rows,
            classes=classes,
            sparse=vectorizer is not None or facts.sparse,
            width=facts.widths[1] if vectorizer is None else len(vectorizer.terms_),
            names=names,
        )
        known = replace(kept, n_partitions=len(facts.partitions))
        classifier.fit_rows(PartitionedRows(known, rows_of, len(classes), MOST_BYTES), classes)
    finally:
        kept.frame.unpersist()
    if vectorizer is None:
        return classifier
    return Pipeline([("vectorizer", vectorizer), ("classifier", classifier)])


def _unchanged(piece: Piece) -> Piece:
    return piece


def _survey(piece: Piece, vectorizer: TermFrequencyVectorizer | None = None) -> list[Any]:
    return [Facts.of(piece), *([] if vectorizer is None else [vectorizer.totals(piece.X)])]


def _vectorised(vectorizer: TermFrequencyVectorizer, piece: Piece) -> Piece:
    return replace(piece, X=vectorizer.transform(piece.X))


def _rows(
    piece: Piece, classes: npt.NDArray[Any], sparse: bool, width: int, names: npt.ArrayLike | None
) -> ArrayRows:
    codes = np.searchsorted(classes, piece.labels.astype(classes.dtype))
    return ArrayRows(in_form(piece.X, sparse, width), codes, len(classes), piece.weights, names)
