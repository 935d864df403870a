"""Fits on streams of labelled batches: labels and words in a first pass, sums in a second.

Only a batch, the words, the sums and a sample of the rows are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.classifier import MaxDiscClassifier
from maxdisc.engines.checkpoints import Journal, StreamEngine
from maxdisc.families.blocks import MixedMoments
from maxdisc.fitting.settings import Settings
from maxdisc.numerics.block_matrix import Table
from maxdisc.numerics.matrices import Matrix, canonical, is_sparse
from maxdisc.numerics.switches import batch_size
from maxdisc.rows.frames import cells_of, column_names, is_frame
from maxdisc.rows.partitions import Job, Looks, PartitionedRows, Summand
from maxdisc.rows.row_sources import ArrayRows, BatchRows, Rows
from maxdisc.rows.schema import Schema
from maxdisc.rows.table_totals import TableTotals
from maxdisc.words.vectorizer import TermFrequencyVectorizer

#: Number of batches whose words are counted before the results are added up.
SEGMENT = 32
#: With more labels than this, they probably identify rows.
MOST_CLASSES = 2**16


class LabelledBatch(Protocol):
    """Some rows of a stream."""

    @property
    def X(self) -> Any:  # noqa: N802  # as everywhere
        """Documents, or a matrix."""

    @property
    def y(self) -> npt.NDArray[Any]:
        """Their labels, shape (n,)."""

    @property
    def left_out(self) -> int:
        """The number of rows that were left out."""

    def located(self) -> AbstractContextManager[None]:
        """Add the source of the row to error messages inside."""


@dataclass(frozen=True, eq=False)
class Labelled:
    """Batch of rows with labels."""

    X: Any
    y: npt.NDArray[Any]  # (n,)
    left_out: int = 0

    def located(self) -> AbstractContextManager[None]:
        return nullcontext()


@dataclass(frozen=True, eq=False)
class Seen:
    """Result of the first pass, except the vocabulary: labels, counts and value range; results add."""

    labels: list[Any]
    n_rows: int
    left_out: int
    width: int
    sparse: bool
    least: float

    @classmethod
    def at(cls, batch: LabelledBatch) -> Seen:
        """Return one batch."""
        X, labels = batch.X, np.unique(batch.y).tolist()
        if is_frame(X):
            return cls(labels, X.shape[0], batch.left_out, X.shape[1], False, 0.0)
        if isinstance(X, list):
            return cls(labels, len(X), batch.left_out, -1, True, 0.0)
        least = float(X.data.min(initial=0.0)) if is_sparse(X) else 0.0
        return cls(labels, X.shape[0], batch.left_out, X.shape[1], is_sparse(X), least)

    def __add__(self, other: Seen) -> Seen:
        if self.width != other.width and not (self.sparse and other.sparse):
            raise ValueError(f"some batches have {self.width} columns, others {other.width}.")
        labels = sorted({*self.labels, *other.labels})
        if len(labels) > MOST_CLASSES:
            raise ValueError(f"there are more than {MOST_CLASSES:,} different labels: are they classes?")
        return Seen(
            labels,
            self.n_rows + other.n_rows,
            self.left_out + other.left_out,
            max(self.width, other.width),
            self.sparse and other.sparse,
            min(self.least, other.least),
        )

    def __len__(self) -> int:
        return self.n_rows

    @property
    def y(self) -> npt.NDArray[Any]:
        """Each class once, sorted."""
        return np.array(self.labels)


class LabelledStream:
    """Labelled batches that can be read repeatedly.

    Parameters
    ----------
    batches : callable
        Function of a number of batches to skip; returns an iterator over the batches of a new pass, pairs of
        X and y or :class:`LabelledBatch`. With a journal, every pass must have the same batches.
    vectorizer : TermFrequencyVectorizer, optional
        For documents; its vocabulary is learnt in the first pass.
    journal : Journal, optional
        Checkpoints of sums, so that a fit can be resumed.
    names : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> from itertools import islice
    >>> from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
    >>> from maxdisc.engines import LabelledStream
    >>> def read():
    ...     for number in range(20):
    ...         yield [f"the moon {number}", f"the goal {number}"], ["space", "hockey"]
    >>> words = TermFrequencyVectorizer()
    >>> stream = LabelledStream(lambda done: islice(read(), done, None), words)
    >>> model = stream.fit(MaxDiscClassifier(cv="hash"))
    >>> print(model.predict(words.transform(["to the moon"])))
    ['space']
    """

    def __init__(
        self,
        batches: Callable[[int], Iterator[Any]],
        vectorizer: TermFrequencyVectorizer | None = None,
        journal: Journal | None = None,
        names: Sequence[str] | None = None,
    ) -> None:
        self.batches, self.vectorizer, self.names = batches, vectorizer, names
        self.journal = Journal(None, {}) if journal is None else journal
        for kind in (Seen, TableTotals, MixedMoments, Table):
            self.journal.allow(kind)
        self._seen: Seen | None = None
        self._totals: TableTotals | None = None
        self._schema: Schema | None = None

    def look(self) -> Seen:
        """Run the first pass: labels, and the words of documents, or the contents of columns."""
        if self._seen is None:
            seen, *others = self.journal.added(self._looks)
            if self.vectorizer is not None:
                self.vectorizer.fit_totals(others[0])
                seen = replace(seen, width=len(self.vectorizer.terms_))
            elif others:
                self._totals = others[0]
            self._seen = seen
        return self._seen

    def fit(self, classifier: MaxDiscClassifier) -> MaxDiscClassifier:
        """Fit a classifier, in one more pass if evidence is calibrated; folds are by a hash of the row.

        Parameters
        ----------
        classifier : MaxDiscClassifier
            With ``cv="hash"`` or a number of folds. Sums of joint densities are not written to the journal.

        Returns
        -------
        MaxDiscClassifier
            The same, fitted: the model that it would be with all rows in memory, of independent features
            unless joint densities are asked for.
        """
        seen, settings = self.look(), Settings.of(classifier.get_params(deep=False))
        example: Matrix = np.zeros((1, seen.width))
        self._schema = None
        if self._totals is not None and settings.reads_frames():
            settings.require_mixable(True)
            self._schema = settings.schema_of(self._totals, seen.y)
            example = self._schema.example()
        elif seen.sparse:
            example = sp.csr_array(([seen.least], ([0], [0])), shape=example.shape)
        rows: Rows = PartitionedRows(self, self._rows_of, len(seen.labels), Looks(example, seen.n_rows))
        if settings.joint is not None:
            # Their sums are requested inside others.
            rows = BatchRows(self._arrays, len(seen.labels), self.names)
        classifier.fit_rows(rows, seen.y, self._schema)
        if self.names is not None and self.vectorizer is None:
            classifier.feature_names_in_ = np.array(self.names, dtype=object)
        elif self._totals is not None:
            classifier.feature_names_in_ = np.array(self._totals.names, dtype=object)
        return classifier

    def added(self, job: Job[Summand]) -> list[Summand]:
        """Run a job on every batch, one after the other: a stream is an engine of one process."""

        def located(batch: LabelledBatch) -> list[Summand]:
            with batch.located():
                return job(batch)

        return StreamEngine(self._labelled, self.journal).added(located)

    def _labelled(self, done: int) -> Iterator[LabelledBatch]:
        for batch in self.batches(done):
            yield Labelled(batch[0], np.asarray(batch[1])) if isinstance(batch, tuple) else batch

    def _looks(self, done: int) -> Generator[tuple[int, list[Any]], None, None]:
        """Yield the summands of the first pass, some batches at a time."""
        batches = self._labelled(done)
        for first in batches:
            segment = _Segment(chain([first], islice(batches, batch_size(SEGMENT) - 1)))
            terms = [] if self.vectorizer is None else [self.vectorizer.totals(segment.documents())]
            count, seen, totals = segment.looked()
            yield count, [*seen, *terms, *totals]

    def _rows_of(self, batch: LabelledBatch) -> ArrayRows:
        seen = self.look()
        classes, y = seen.y, batch.y
        codes = np.searchsorted(classes, y)
        if not (classes[np.minimum(codes, len(classes) - 1)] == y).all():
            raise ValueError("the rows have changed: they have labels that the first pass did not find.")
        return ArrayRows(self._matrix(batch.X, seen.width), codes, len(classes), names=self.names)

    def _matrix(self, X: Any, width: int) -> Matrix:
        if self.vectorizer is not None:
            return self.vectorizer.transform(X)
        if is_frame(X):
            names = column_names(X)
            cells = cells_of(X, names)
            return cells.numbers if self._schema is None else self._schema.encoded(cells, names)
        if is_sparse(X):
            X = canonical(X)
            return sp.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], width))
        return X

    def _arrays(self) -> Iterator[tuple[Matrix, npt.NDArray[Any]]]:
        for batch in self._labelled(0):
            with batch.located():
                rows = self._rows_of(batch)
            yield rows.X, rows.labels


class _Segment:
    """Iterator over some batches of the first pass that collects statistics."""

    def __init__(self, batches: Iterator[LabelledBatch]) -> None:
        self._batches = batches
        self._count, self._seen = 0, list[Seen]()
        self._totals: list[TableTotals] = []

    def documents(self) -> Iterator[str]:
        for batch in self._passing():
            yield from batch.X

    def _passing(self) -> Iterator[LabelledBatch]:
        for batch in self._batches:
            self._count += 1
            seen = Seen.at(batch)
            self._seen = [self._seen[0] + seen] if self._seen else [seen]
            if is_frame(batch.X):
                with batch.located():
                    names = column_names(batch.X)
                    totals = TableTotals.of(cells_of(batch.X, names), batch.y, names)
                self._totals = [self._totals[0] + totals] if self._totals else [totals]
            yield batch

    def looked(self) -> tuple[int, list[Seen], list[TableTotals]]:
        """Return the number of batches and their statistics."""
        for _ in self._passing():
            pass
        return self._count, self._seen, self._totals
