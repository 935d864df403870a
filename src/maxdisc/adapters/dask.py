"""Dask: jobs run where the partitions are, and only sums are returned, in a tree reduction."""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import _get_feature_names, check_is_fitted

from maxdisc.engines.partitioned_fit import Labelled, fit_labelled, taken_apart
from maxdisc.numerics.installation import pip_line
from maxdisc.numerics.matrices import is_sparse, require_indices
from maxdisc.rows.partitions import Job, Summand, entrywise

try:
    import dask
    import dask.array as da
    import distributed
    from dask.delayed import delayed
except ImportError as error:
    raise ImportError(f"maxdisc.adapters.dask needs dask: {pip_line('dask')}") from error

__all__ = ["fit", "predict", "predict_proba"]

#: So many sums are added by one task: fewer would mean more tasks, more would wait in memory for each other.
ADDED_AT_ONCE = 4
#: A job, such as the decisions of all folds, may be larger than what Dask takes for a mistake.
_LARGE_JOBS = {"distributed.admin.large-graph-warning-threshold": "100GB"}

Model = TypeVar("Model")


@dataclass(frozen=True, eq=False)
class DaskEngine:
    """Partitions read by Dask workers; an :class:`maxdisc.rows.partitions.Engine`.

    ``read`` turns a partition into one or more :class:`Labelled` batches on the worker, so it must be
    picklable.
    """

    partitions: Sequence[Any]
    read: Callable[[Any], Iterable[Labelled]]

    def added(self, job: Job[Summand]) -> list[Summand]:
        """Run a job on every partition, and add up what they return, entry by entry, as a tree."""
        # One node of the graph, which all tasks share: workers hand it on to each other. A scattered value
        # would do the same, but be lost together with a worker.
        shared = delayed((job, self.read), traverse=False)
        sums = [delayed(_done)(shared, partition) for partition in self.partitions]
        while len(sums) > 1:
            sums = [
                delayed(_added)(sums[first : first + ADDED_AT_ONCE])
                for first in range(0, len(sums), ADDED_AT_ONCE)
            ]
        with dask.config.set(_LARGE_JOBS):
            (total,) = dask.compute(*sums or [[]])
        if not total:
            raise ValueError("there are no rows: all partitions are empty, or all their weights are zero.")
        return list(total)


def _done(shared: tuple[Job[Summand], Callable[[Any], Iterable[Labelled]]], partition: Any) -> list[Summand]:
    job, read = shared
    total: list[Summand] = []
    for part in read(partition):
        with part.located():
            total = entrywise(total, job(part))
    return total


def _added(sums: list[list[Summand]]) -> list[Summand]:
    return reduce(entrywise, sums)


def fit(
    estimator: Model, X: Any, y: Any, sample_weight: Any = None, classes: npt.ArrayLike | None = None
) -> Model:
    """Fit an estimator to a Dask collection, where its partitions are.

    The model is that of ``estimator.fit`` with ``cv="hash"``, ``structure="independent"`` and all rows in
    memory, for any partitions; only sums come back from the workers. Rows are read several times, so use
    ``X.persist()`` if they fit into the workers' memory.

    Parameters
    ----------
    estimator : MaxDiscClassifier or Pipeline
        The classifier, or a :class:`maxdisc.TermFrequencyVectorizer` and the classifier. ``cv`` must be
        "hash" or a number of folds, which are then by a hash of each row.
    X : dask array or dataframe of shape (N, D); of documents: series, bag or array of shape (N,)
        Blocks are dense, with NaN for missing cells, or scipy sparse matrices.
    y : dask array, series or bag of shape (N,)
        Labels, in partitions like those of X; or in memory, if the lengths of these are known.
    sample_weight : as y, optional
        Row weights.
    classes : array-like of shape (C,), optional
        The labels, sorted; by default they are found in an additional pass.

    Returns
    -------
    MaxDiscClassifier or Pipeline
        The estimator, fitted: it predicts in memory, explains, and is saved like any other.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.adapters.dask import fit
    >>> X, y = load_iris(return_X_y=True)
    >>> here = MaxDiscClassifier(cv="hash").fit(X, y)
    >>> rows, labels = da.from_array(X, chunks=(40, 4)), da.from_array(y, chunks=40)
    >>> there = fit(MaxDiscClassifier(cv="hash"), rows, labels)
    >>> bool((there.predict(X) == here.predict(X)).all())
    True
    """
    ndim = 2 if taken_apart(estimator)[0] is None else 1
    _require_collection(X)
    if (found := getattr(X, "ndim", 1)) != ndim:
        wanted = "a table of numbers" if ndim == 2 else "a column of documents, such as df['body'],"
        raise ValueError(f"this estimator takes {wanted} as X, got {type(X).__name__} with {found} axes.")
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None.")
    blocks = _blocks(X)
    labels = _blocks_like(X, len(blocks), y, "y")
    weights = _blocks_like(X, len(blocks), sample_weight, "sample_weight")
    names = _get_feature_names(X._meta) if hasattr(X, "columns") else None
    engine = DaskEngine(list(zip(range(len(blocks)), blocks, labels, weights, strict=True)), _read)
    return fit_labelled(estimator, engine, classes, names)


def _read(partition: tuple[int, list[Any], list[Any], list[Any] | None]) -> Iterator[Labelled]:
    number, X, y, weights = partition
    told = f"partition {number}: {{}}".format
    yield Labelled(_side_by_side(X, told), y[0], None if weights is None else weights[0], told)


def predict(estimator: Any, X: Any) -> Any:
    """Return the most probable label of each row, as a lazy array.

    Parameters
    ----------
    estimator : MaxDiscClassifier or Pipeline
        Fitted.
    X : dask collection
        As for :func:`fit`.

    Returns
    -------
    dask.array.Array of shape (N,)
        Computed lazily, block by block.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.adapters.dask import predict
    >>> X, y = load_iris(return_X_y=True)
    >>> labels = predict(MaxDiscClassifier().fit(X, y), da.from_array(X, chunks=(50, 4)))
    >>> labels.chunks, labels[:3].compute().tolist()
    (((50, 50, 50),), [0, 0, 0])
    """
    check_is_fitted(estimator)
    return _mapped(estimator, "predict", X, estimator.classes_[:0])


def predict_proba(estimator: Any, X: Any) -> Any:
    """Return posterior probabilities, as a lazy array.

    Parameters
    ----------
    estimator : MaxDiscClassifier or Pipeline
        Fitted.
    X : dask collection
        As for :func:`fit`.

    Returns
    -------
    dask.array.Array of shape (N, C)
        Computed lazily, block by block.

    Examples
    --------
    >>> import dask.array as da
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.adapters.dask import predict_proba
    >>> X, y = load_iris(return_X_y=True)
    >>> predict_proba(MaxDiscClassifier().fit(X, y), da.from_array(X, chunks=(50, 4))).shape
    (150, 3)
    """
    check_is_fitted(estimator)
    return _mapped(estimator, "predict_proba", X, np.empty((0, len(estimator.classes_))))


def _mapped(estimator: Any, method: str, X: Any, nothing: npt.NDArray[Any]) -> Any:
    """Return what a method makes of every partition; ``nothing`` is what it makes of no rows."""
    _require_collection(X)
    shared = delayed((estimator, method, nothing), traverse=False)
    blocks = _blocks(X)
    lengths: Sequence[float] = _lengths(X) or [np.nan] * len(blocks)
    parts = [
        da.from_delayed(
            delayed(_predicted)(shared, number, block), (length, *nothing.shape[1:]), meta=nothing
        )
        for number, (block, length) in enumerate(zip(blocks, lengths, strict=True))
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _predicted(shared: tuple[Any, str, npt.NDArray[Any]], number: int, blocks: list[Any]) -> npt.NDArray[Any]:
    estimator, method, nothing = shared
    told = f"partition {number}: {{}}".format
    X = _side_by_side(blocks, told)
    part = Labelled(X, None, told=told)
    if not len(part):
        return nothing
    with part.located():
        return np.asarray(getattr(estimator, method)(X))


# ------------------------------------------------------------------ collections


def _require_collection(X: Any) -> None:
    if not dask.is_dask_collection(X) or not hasattr(X, "to_delayed"):
        raise ValueError(
            f"X must be a dask array, dataframe, series or bag, got {type(X).__name__}: call the estimator's "
            "own method for rows in memory."
        )


def _blocks(collection: Any) -> list[list[Any]]:
    """For each partition its blocks, side by side: of all but arrays there is one."""
    if isinstance(collection, da.Array):
        # As it is, so that what X and y have in common is computed once.
        return [np.atleast_1d(row).tolist() for row in collection.to_delayed(optimize_graph=False)]
    if hasattr(collection, "map_partitions") and not hasattr(collection, "ndim"):
        collection = collection.map_partitions(list)  # the partitions of a bag may be iterators
    return [[part] for part in collection.to_delayed()]


def _side_by_side(blocks: Sequence[Any], told: Callable[[str], str]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    with Labelled(blocks, None, told=told).located():
        for block in blocks:
            require_indices(block)
    return sp.hstack(blocks, format="csr") if is_sparse(blocks[0]) else np.hstack(blocks)


def _lengths(collection: Any) -> list[int] | None:
    """Return how many rows each partition has; None if that is not known."""
    if not isinstance(collection, da.Array) or np.isnan(collection.chunks[0]).any():
        return None
    return list(collection.chunks[0])


def _blocks_like(X: Any, count: int, other: Any, name: str) -> Sequence[list[Any] | None]:
    """Labels or weights in the partitions of X, of which there are ``count``."""
    if other is None:
        return [None] * count
    lengths = _lengths(X)
    if not dask.is_dask_collection(other):
        if lengths is None:
            raise ValueError(f"{name} must be a dask collection, as it is not known how long partitions are.")
        other = da.from_array(np.asarray(other), chunks=-1)
    own = _lengths(other)
    if lengths is not None and own is not None:
        if sum(own) != sum(lengths):
            raise ValueError(f"X has {sum(lengths)} rows, but {name} has {sum(own)}.")
        other = other.rechunk({0: tuple(lengths)})
    blocks = _blocks(other)
    if len(blocks) != count:
        raise ValueError(
            f"X has {count} partitions, but {name} has {len(blocks)}, and it is not known how long they are: "
            "take both from one collection, or repartition them alike."
        )
    return blocks


# ------------------------------------------------------------------ workers


@contextmanager
def connected(scheduler: str | None = None) -> Iterator[Any]:
    """Yield a client of a scheduler, or of local workers (one process per core) that end with the block."""
    try:
        with _client_of(scheduler) as client:
            yield client
    except distributed.KilledWorker:
        raise ValueError(
            "workers of Dask died again and again, always at the same partition: give them more memory, or "
            "make partitions smaller."
        ) from None


@contextmanager
def _client_of(scheduler: str | None) -> Iterator[Any]:
    if scheduler is not None:
        try:
            client = distributed.Client(scheduler, timeout=10)
        except (OSError, ValueError) as error:
            raise ValueError(f"there is no Dask scheduler at {scheduler}: {error}") from None
        with client:
            yield client
        return
    with _without_interruption():
        # Errors are raised here; workers need not log them, too.
        cluster = distributed.LocalCluster(
            threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=logging.CRITICAL
        )
    with cluster, distributed.Client(cluster) as client:
        yield client


@contextmanager
def _without_interruption() -> Iterator[None]:
    """Ctrl-C is passed over: in the block, and for ever by processes that are started there.

    It reaches all processes of a terminal, but is for the one that started the workers, and ends them.
    """
    if threading.current_thread() is not threading.main_thread():  # no other may say so
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)
