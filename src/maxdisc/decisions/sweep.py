"""The sweep: what models with the best 1, 2, ... features make of held-out rows, counted in one pass.

What a pass counts adds, over the parts of a batch, batches, partitions and machines.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from maxdisc.numerics.matrices import Booleans, Floats, Integers, Matrix
from maxdisc.numerics.switches import batch_size

# So many stored cells of rows are swept by a thread at a time: threads should end at about the same time.
STORED_AT_A_TIME = 2**15


@dataclass(frozen=True, eq=False)
class Sweep:
    """Correct counts and log-loss on held-out rows for each of S numbers of features; sweeps add."""

    correct: Floats  # (S,)
    loss: Floats  # (S,)
    weight: float
    squares: float

    def __add__(self, other: Sweep) -> Sweep:
        return Sweep(
            self.correct + other.correct,
            self.loss + other.loss,
            self.weight + other.weight,
            self.squares + other.squares,
        )

    @classmethod
    def zero(cls, n_sizes: int) -> Sweep:
        """Return the counts of no rows."""
        return cls(np.zeros(n_sizes), np.zeros(n_sizes), 0.0, 0.0)


class Additive(Protocol):
    """What a pass counts: the counts of two batches add."""

    def __add__(self, other: Self, /) -> Self:
        """Of the rows of both."""


Counted = TypeVar("Counted", bound=Additive)
_Counted = TypeVar("_Counted", bound=Additive, covariant=True)


class Sweepable(Protocol[_Counted]):
    """A model, or several at once, that can be tried on held-out rows."""

    def swept(
        self, X: Matrix, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> _Counted:
        """Return what is counted of some rows (there may be none) with the best 1, 2, ... features."""


def counted(
    scores: Floats, labels: npt.NDArray[Any], weights: Floats, doubt: float = 0.0
) -> tuple[Floats, Floats]:
    """Weight of the rows that scores (..., n, C) classify correctly, and their log-loss; shape (...).

    With a doubt, that is the probability with which a row is taken to have another class than its own.
    """
    predicted = scores.argmax(axis=-1)
    highest = scores.max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_p = scores - (highest + np.log(np.exp(scores - highest).sum(axis=-1, keepdims=True)))
    # A class absent from the training rows has probability 0: as wrong as numbers can say.
    absent = np.isneginf(log_p)
    log_p = np.where(absent, np.log(np.finfo(np.float64).tiny), log_p)
    told = log_p
    if doubt:
        # Rows of a class that cannot be tell nothing, nor do rows that can have no other.
        other = _log_other(log_p, absent)
        told = np.where(absent | np.isneginf(other), log_p, (1 - doubt) * log_p + doubt * other)
    at = np.arange(len(labels))
    if labels.ndim == 1:
        return (predicted == labels) @ weights, -(told[..., at, labels] @ weights)
    return labels[at, predicted] @ weights, -((labels * told).sum(axis=-1) @ weights)


def trusted_losses(
    scores: Floats, labels: Integers, weights: Floats, trusts: Sequence[float], doubt: float
) -> Floats:
    """Log-loss of :func:`counted` for the scores (M, n, C) times each trust, shape (T, M).

    What does not depend on the trust is computed once, which takes a third of the time.
    """
    at, n_classes = np.arange(len(labels)), scores.shape[-1]
    own = scores[:, at, labels]
    others = (labels[:, None] + np.arange(1, n_classes)) % n_classes
    with np.errstate(invalid="ignore"):
        gaps = scores[:, at[:, None], others] - own[:, :, None]
        highest = gaps.max(axis=-1)
        gaps -= highest[:, :, None]
    # A class absent from the training rows, or the only one there: no trust changes that.
    fixed = ~np.isfinite(highest)
    surely = np.where(np.isneginf(own), -np.log(np.finfo(np.float64).tiny), 0.0)
    out = np.empty((len(trusts), len(scores)))
    with np.errstate(invalid="ignore"):
        for t, trust in enumerate(trusts):
            odds = trust * highest + np.log(np.exp(trust * gaps).sum(axis=-1))
            loss = np.maximum(odds, 0.0) + np.log1p(np.exp(-np.abs(odds))) - doubt * odds
            out[t] = np.where(fixed, surely, loss) @ weights
    return out


def _log_other(log_p: Floats, absent: Booleans) -> Floats:
    """Log of one minus each probability, (..., C), with all digits where one is next to 1."""
    first = log_p.argmax(axis=-1)[..., None]
    others = np.where(absent, -np.inf, log_p)
    np.put_along_axis(others, first, -np.inf, axis=-1)
    with np.errstate(divide="ignore"):
        out = np.log1p(-np.minimum(np.exp(log_p), 0.5 + 1e-9))
    np.put_along_axis(out, first, np.logaddexp.reduce(others, axis=-1)[..., None], axis=-1)
    return np.asarray(out)


@dataclass(frozen=True, eq=False)
class Bucketed:
    """One-statistic decision in the layout of the compiled sweep."""

    natural: Floats  # (T, C)
    place: npt.NDArray[np.int32]  # (D,)
    bucket: npt.NDArray[np.int32]  # (D,)
    baseline: Floats  # (S, C)
    log_prior: Floats  # (C,)

    @property
    def tables(self) -> tuple[Floats, npt.NDArray[Any], int, Floats]:
        """What the kernels take: of each feature, its bucket and its place are one number, soon looked up.

        Without a place is what no training row has, or only rows without weight: it belongs to no bucket.
        """
        n_buckets = len(self.baseline)
        few = len(self.natural) < 2**24 and n_buckets < 2**8
        kind, shift = ("u4", 24) if few else ("u8", 48)
        spots: npt.NDArray[Any] = np.where(self.place < 0, n_buckets, self.bucket).astype(kind)
        spots <<= shift
        spots |= np.maximum(self.place, 0).astype(kind)
        return self.natural, spots, shift, self.baseline


def ranges_of_cells(X: Matrix, rows: Integers) -> list[Integers]:
    """Return some rows of a CSR matrix, in order, a part at a time, each with about as many stored cells.

    The parts depend on the rows alone: whatever is added up over them does not depend on threads.
    """
    cells, step = np.cumsum(X.indptr[rows + 1] - X.indptr[rows]), batch_size(STORED_AT_A_TIME)
    return np.split(rows, np.searchsorted(cells, np.arange(step, cells[-1:].sum(), step)))


def sweep_tasks(
    X: Matrix, labels: Integers, weights: Floats, rows: Integers, model: Bucketed
) -> list[Callable[[], Sweep]]:
    """Return tasks of the compiled sweep over rows of a CSR matrix; their results add."""
    from maxdisc.decisions.compiled_sweep import sweep_rows

    tables = model.tables

    def sweep_part(some: Integers) -> Sweep:
        correct, loss = np.zeros(len(model.baseline)), np.zeros(len(model.baseline))
        given = (X.indptr, X.indices, X.data, some, labels, weights, *tables, model.log_prior)
        sweep_rows(*given, correct, loss)
        held = weights[some]
        return Sweep(correct, loss, float(held.sum()), float(held @ held))

    return [partial(sweep_part, some) for some in ranges_of_cells(X, rows)]
