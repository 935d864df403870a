"""Fold models of sparse rows in memory, by compiled code: the same paths as the general way, sooner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.decisions.linear import CELLS_AT_A_TIME, unknown_decision, worth_compiling
from maxdisc.decisions.sweep import Bucketed, Sweep, ranges_of_cells, sweep_tasks
from maxdisc.divergences.class_divergences import Divergence, best_first, js_gm, require_finite
from maxdisc.families import Family
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.counting import class_moments
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks, is_sparse, on_lines
from maxdisc.numerics.switches import batch_size, is_compiled
from maxdisc.numerics.threads import Work, in_threads, in_turn, n_threads
from maxdisc.rows.row_sources import LEFT_OUT, ArrayRows, Folds
from maxdisc.rows.sampling import content_hashes, sampled
from maxdisc.selection.fold_models import Choice, SelectionPath
from maxdisc.selection.held_out import HeldOut

_Result = TypeVar("_Result")

#: The class sums that are kept at once, for several folds, take at most so many bytes.
CELLS_AT_ONCE = 2**29
#: A table of parameters of more bytes is made only for each thread.
SMALL_TABLE = 2**26


def suits(rows: ArrayRows, family: Family, divergence: Divergence) -> bool:
    """Return whether :class:`SparseFoldModels` supports these rows and models, and pays off."""
    return (
        is_sparse(rows.X)
        and rows.labels.ndim == 1
        and worth_compiling(family, divergence, rows.n_classes, rows.X.shape[1])
    )


@dataclass(frozen=True, eq=False)
class SparseFoldModels:
    """Compiled :class:`maxdisc.selection.fold_models.FoldModels` for one-statistic families.

    Models are built column by column and swept over held-out rows without storing the moments of every
    fold.
    """

    rows: ArrayRows
    family: Family
    prior: Floats | None  # (C,)
    plans: Sequence[Folds]
    divergence: Divergence = js_gm

    def __post_init__(self) -> None:
        self.family.require(self.rows.X, self.rows.names, self.rows.start)

    @property
    def n_features(self) -> int:
        """D, the number of features."""
        return int(self.rows.X.shape[1])

    def total(self) -> ClassMoments:
        """Return the moments of all the rows."""
        return self._whole

    @cached_property
    def _whole(self) -> ClassMoments:
        group, rows = self._groups[0], self.rows
        if (group.fold == LEFT_OUT).any():
            return class_moments(self.family.statistics, rows.X, rows.labels, rows.n_classes, rows.weights)
        return group.counted.whole

    @cached_property
    def _spare(self) -> list[Floats]:
        """Tables, used for one model after the other: fresh memory can cost more than filling it."""
        return []

    @cached_property
    def _columns(self) -> Matrix:
        return _by_columns(self._values)

    @cached_property
    def _values(self) -> Matrix:
        return self.rows.X.astype(np.float64, copy=False)

    @cached_property
    def _weights(self) -> Floats:
        return np.ones(self._values.shape[0]) if self.rows.weights is None else self.rows.weights

    @cached_property
    def _groups(self) -> list[_Group]:
        """All folds, as many at a time as memory allows."""
        bytes_of_one = (
            12 * min(self._values.nnz, self.rows.n_classes * self.n_features) + 28 * self.n_features
        )
        most = max(1, batch_size(CELLS_AT_ONCE) // max(bytes_of_one, 1))
        out = []
        for folds in self.plans:
            fold = folds.of(self.rows.X, self.rows.start)
            firsts = range(0, folds.count, most)
            out += [_Group(self, fold, range(first, min(first + most, folds.count))) for first in firsts]
        return out

    @property
    def held(self) -> Floats:
        """How many rows (of equal weight) each fold holds out, those of all plans one after the other."""
        return np.array([trial.n_rows for group in self._groups for trial in group.trials])

    def paths(
        self, sizes: Integers, smoothings: Sequence[Smoothing], chosen: range | None = None
    ) -> list[SelectionPath]:
        """Sweep the held-out rows of every fold, or of those chosen, for each smoothing."""
        tried = self._tried(smoothings, chosen, lambda t, smoothing, table: t.sweep(sizes, smoothing, table))
        return [
            SelectionPath.of(sizes, list(swept.values()), smoothing)
            for swept, smoothing in zip(tried, smoothings, strict=True)
        ]

    def held_out(
        self, edges: Integers, smoothings: Sequence[Smoothing], most: int, chosen: range | None = None
    ) -> list[dict[int, HeldOut]]:
        """Evidence of the held-out rows, by the number of the fold; see :class:`Trials`."""
        tried = self._tried(smoothings, chosen, lambda t, s, table: t.evidence(edges, s, most, table))
        return [{f: found for f, found in by_fold.items() if found is not None} for by_fold in tried]

    def unknown(
        self,
        edges: Integers,
        smoothing: Smoothing,
        most: int,  # noqa: ARG002  # the rows are where they were
        held: dict[int, HeldOut],
    ) -> dict[int, Floats]:
        """Return the evidence for unknown classes, by the number of the fold; see ``Trials``."""
        trials = [trial for group in self._groups for trial in group.trials]
        out = in_threads(lambda f: trials[f].unknown(len(edges), smoothing, held[f]), list(held))
        return dict(zip(held, out, strict=True))

    def places(self, fold: int, smoothing: Smoothing, sizes: Integers) -> Integers:
        """Return where in ``sizes`` the first one is that selects each feature; there must be one plan."""
        chosen = range(fold, fold + 1)
        found = self._tried((smoothing,), chosen, lambda t, s, table: t.places(sizes, s, table))
        return found[0][fold]

    def with_stability(self, choice: Choice) -> Choice:
        """Return what was chosen on these folds, with how many of their models keep each feature."""
        kept = [
            bucket <= np.searchsorted(sizes, choice.size)
            for (smoothing, *_), (sizes, bucket) in self._buckets.items()
            if smoothing == choice.smoothing
        ]
        return choice if not kept else replace(choice, stability=np.mean(kept, axis=0))

    @cached_property
    def _buckets(self) -> dict[tuple[Smoothing, int, int], tuple[Integers, npt.NDArray[np.int32]]]:
        """By smoothing, group and fold, of every model tried: sizes, and the first that has a feature."""
        return {}

    def _tried(
        self,
        smoothings: Sequence[Smoothing],
        chosen: range | None,
        task: Callable[[_Trial, Smoothing, Floats], Work[_Result]],
    ) -> list[dict[int, _Result]]:
        """For each smoothing, what the trials of the folds chosen come to."""
        out: list[dict[int, _Result]] = [{} for _ in smoothings]
        before = 0
        for group in self._groups:
            numbers = range(before, before + len(group.trials))
            if chosen is not None:
                numbers = range(max(chosen.start, before), min(chosen.stop, numbers.stop))
            trials = [group.trials[n - before] for n in numbers]
            before += len(group.trials)
            if not trials:
                continue
            # Now, by all threads together.
            _ = group.counted
            pairs = [(smoothing, trial) for smoothing in smoothings for trial in trials]
            done = self._done(task, pairs)
            if len(self._groups) > 1:
                vars(group).pop("counted")
            for i, by_fold in enumerate(out):
                by_fold.update(zip(numbers, done[i * len(trials) : (i + 1) * len(trials)], strict=True))
        return out

    def _done(
        self,
        task: Callable[[_Trial, Smoothing, Floats], Work[_Result]],
        pairs: Sequence[tuple[Smoothing, _Trial]],
    ) -> list[_Result]:
        """Make the models of pairs, in a table for each thread or one more, and try them on their rows."""
        # One more than there are threads, if it is small: none waits while the last rows of one are swept.
        small = 8 * self._most_placed * self.rows.n_classes <= SMALL_TABLE
        while len(self._spare) < min(n_threads() + small, len(pairs)):
            self._spare.append(on_lines(self._most_placed, self.rows.n_classes))

        def begun(pair: tuple[Smoothing, _Trial], seat: int) -> Work[_Result]:
            smoothing, trial = pair
            return task(trial, smoothing, self._spare[seat])

        return in_turn([partial(begun, pair) for pair in pairs], len(self._spare))

    @cached_property
    def _most_placed(self) -> int:
        """In no fold do the rows that are held out have more features than this."""
        stored = np.diff(self._values.indptr)
        most = max(int(stored[trial.held].sum()) for group in self._groups for trial in group.trials)
        return min(most, self.n_features)


@dataclass(frozen=True, eq=False)
class _Cells:
    """The class sums of a fold's training rows, by feature, and what goes with them."""

    ends: Integers
    classes: npt.NDArray[np.int32]
    sums: Floats
    place: npt.NDArray[np.int32]
    pooled: ClassMoments

    @property
    def n_placed(self) -> int:
        """How many features the rows held out have."""
        return int(self.place.max(initial=-1)) + 1


@dataclass(frozen=True, eq=False)
class _Counted:
    """What one pass over the columns finds: the class sums of every fold, and of all the rows."""

    cells: list[_Cells]
    whole: ClassMoments


@dataclass(frozen=True, eq=False)
class _Group:
    """Some folds of one plan, whose cells are made together; ``fold`` is that of each row, of all folds."""

    models: SparseFoldModels
    fold: Integers
    chosen: range

    @cached_property
    def trials(self) -> list[_Trial]:
        order = np.argsort(self.fold, kind="stable")
        starts = np.searchsorted(self.fold[order], np.arange(self.chosen.start, self.chosen.stop + 1))
        return [_Trial(self, place, order[a:b]) for place, (a, b) in enumerate(pairwise(starts.tolist()))]

    @property
    def trained(self) -> Floats:
        """The weights of all rows in the folds that do not hold them out, shape (N,)."""
        return np.where(self.fold == LEFT_OUT, 0.0, self.models._weights)

    @cached_property
    def counted(self) -> _Counted:
        from maxdisc.selection.compiled_cells import count_classes, fold_cells

        models, count = self.models, len(self.chosen)
        n_classes, n_features = models.rows.n_classes, models.n_features
        columns = models._columns
        held = (self.fold >= self.chosen.start) & (self.fold < self.chosen.stop)
        folds = np.where(held, self.fold - self.chosen.start, count)
        shift = count.bit_length()
        slots = ((models.rows.labels.astype(np.int64) << shift) + folds).astype(np.uint32)
        trained, ranges = self.trained, list(blocks(n_features, n_classes, CELLS_AT_A_TIME))
        ends = np.zeros(n_features + 1, dtype=np.intp)
        given = (columns.indptr, columns.indices, slots, shift, n_classes)
        in_threads(lambda r: count_classes(*given, r.start, r.stop, ends[1:]), ranges)
        np.cumsum(ends, out=ends)
        classes, sums = np.empty(ends[-1], dtype=np.int32), np.empty((count, ends[-1]))
        pooled, nonzero = np.empty((count, n_features)), np.empty((2, count, n_features))
        whole, spread = np.empty((1, n_classes, n_features)), np.empty((2, n_features))
        stored = (columns.indptr, columns.indices, columns.data, slots, shift, trained, n_classes)
        into = (ends, classes, sums, pooled, nonzero, whole[0], spread)
        in_threads(lambda r: fold_cells(*stored, r.start, r.stop, *into), ranges)

        def cells(f: int) -> _Cells:
            # All classes together are all that smoothing looks at. Features that only rows held out have say
            # nothing.
            weight = trained[folds != f].sum(keepdims=True)
            together = ClassMoments(weight, pooled[f, None, None], nonzero=nonzero[0, f])
            place = _places((nonzero[1, f] > 0) & (nonzero[0, f] > 0))
            return _Cells(ends, classes, sums[f], place, together)

        weight = np.bincount(models.rows.labels, trained, n_classes).astype(np.float64)
        every = ClassMoments(weight, whole, None, None, spread[0], float(trained @ trained), spread[1])
        return _Counted(in_threads(cells, range(count)), every)


def _places(occurs: npt.NDArray[np.bool_]) -> npt.NDArray[np.int32]:
    """Return the number of each feature among those that occur; -1 for the others."""
    return np.where(occurs, np.cumsum(occurs, dtype=np.int32) - 1, -1)


@dataclass(frozen=True, eq=False)
class _Trial:
    """One fold of a group, its number there, and the rows held out."""

    group: _Group
    number: int
    held: Integers

    @property
    def models(self) -> SparseFoldModels:
        """Those it belongs to."""
        return self.group.models

    @property
    def n_rows(self) -> float:
        """How many rows of equal weight the held-out ones are worth."""
        held = self.models._weights[self.held]
        squares = float(held @ held)
        return float(held.sum()) ** 2 / squares if squares else 0.0

    @property
    def _cells(self) -> _Cells:
        return self.group.counted.cells[self.number]

    @cached_property
    def _class_weights(self) -> Floats:
        rows, training = self.models.rows, self.group.trained
        training[self.held] = 0.0
        return np.bincount(rows.labels, training, rows.n_classes).astype(np.float64)

    @property
    def _prior(self) -> Floats:
        given = self.models.prior
        return self._class_weights / self._class_weights.sum() if given is None else given

    @property
    def _is_empty(self) -> bool:
        """Whether there are no rows to train on, or none held out."""
        return not (self.held.size and self._class_weights.any())

    def sweep(self, sizes: Integers, smoothing: Smoothing, table: Floats) -> Work[Sweep]:
        """Sweep the model of the training rows over the held-out rows; uses ``table``."""
        none = Sweep.zero(len(sizes))
        if self._is_empty:
            return Work([], lambda _: none)
        X, labels, weights = self.models._values, self.models.rows.labels, self.models._weights
        tasks = sweep_tasks(X, labels, weights, self.held, self._ranked(sizes, smoothing, table))
        return Work(tasks, lambda parts: sum(parts, none))

    def evidence(
        self, edges: Integers, smoothing: Smoothing, most: int, table: Floats
    ) -> Work[HeldOut | None]:
        """Return what the model says of the rows held out, or of a sample of them; writes in ``table``."""
        from maxdisc.decisions.compiled_sweep import band_rows

        if self._is_empty:
            return Work([], lambda _: None)
        X, labels, weights = self.models._values, self.models.rows.labels, self.models._weights
        model = self._ranked(edges, smoothing, table)
        rows, hashes = self.held, np.empty(0, dtype=np.uint64)
        count = weights[rows]
        if len(rows) > most:
            hashes = content_hashes(X, labels[rows], rows)
            kept, count = sampled(hashes, count, most)
            rows, hashes = rows[kept], hashes[kept]

        tables = model.tables

        def told(some: Integers) -> Floats:
            out = np.empty((len(some), self.models.rows.n_classes, len(edges)))
            band_rows(X.indptr, X.indices, X.data, some, *tables, out)
            return out

        def together(parts: list[Floats]) -> HeldOut:
            bands = model.bucket.astype(np.int8)
            given = (labels[rows], count, rows, hashes, most, len(self.held), bands)
            return HeldOut(np.concatenate(parts), *given)

        return Work([partial(told, some) for some in ranges_of_cells(X, rows)], together)

    def unknown(self, n_bands: int, smoothing: Smoothing, held: HeldOut) -> Floats:
        """Return what the densities of unknown classes say of some rows, shape (n, 2, G)."""
        from maxdisc.decisions.compiled_sweep import band_rows

        X, every = self.models._values, np.arange(self.models.n_features)
        decision = unknown_decision(self.models.family, self._cells.pooled, smoothing, every)
        assert held.bands is not None
        bucket = held.bands.astype(np.int32)
        baseline = [np.bincount(bucket, b, n_bands + 1)[:n_bands] for b in decision.baseline]
        out, natural = np.empty((len(held), 2, n_bands)), np.ascontiguousarray(decision.weights[0].T)
        model = Bucketed(natural, every.astype(np.int32), bucket, np.stack(baseline, axis=1), np.zeros(2))
        band_rows(X.indptr, X.indices, X.data, held.rows, *model.tables, out)
        return out

    def places(self, sizes: Integers, smoothing: Smoothing, table: Floats) -> Work[Integers]:
        """Return where the first size is that selects each feature; writes in ``table``."""
        found = self._ranked(sizes, smoothing, table).bucket.astype(np.intp)
        return Work([], lambda _: found)

    def _ranked(self, sizes: Integers, smoothing: Smoothing, table: Floats) -> Bucketed:
        """Return the model, with natural parameters of the held-out features in ``table``."""
        from maxdisc.decisions import compiled_parameters as tables

        family, cells, n_classes = self.models.family, self._cells, self.models.rows.n_classes
        natural = table[: cells.n_placed]
        pooled = cells.pooled
        pseudo = smoothing.pseudo_rows(pooled, pooled.sums, smoothing.level(pooled))
        scores = np.empty(self.models.n_features)
        baseline = np.empty((len(sizes), n_classes))
        divergence = tables.DIVERGENCES[self.models.divergence.__name__]
        given = (divergence, cells.ends, cells.classes, cells.sums, cells.place)
        smoothed = (
            self._class_weights,
            self._prior,
            np.ascontiguousarray(pseudo.number),
            np.ascontiguousarray(pseudo.mean[0]),
            family.interior(pseudo.pooled),
        )
        if family.name == "poisson":
            tables.poisson_tables(*given, *smoothed, natural, scores)
            bucket = _buckets(scores, sizes)
            tables.poisson_totals(*given[1:4], *smoothed, bucket, baseline)
        else:
            kind, log_partition = tables.KINDS[family.name], np.empty((len(scores), n_classes))
            tables.tables_from_cells(kind, *given, *smoothed, natural, log_partition, scores)
            bucket = _buckets(scores, sizes)
            tables.bucket_totals(log_partition, bucket, baseline)
        self.models._buckets[smoothing, id(self.group), self.number] = sizes, bucket
        with np.errstate(divide="ignore"):
            return Bucketed(natural, cells.place, bucket, baseline, np.log(self._prior))


def _by_columns(X: Matrix) -> Matrix:
    """Convert CSR to CSC in threads; cells of a column keep the order of rows."""
    if not is_compiled(X.nnz, CELLS_AT_A_TIME):
        return sp.csc_array(X)
    from maxdisc.selection.compiled_cells import column_ends, count_columns, move_to_columns

    cuts = np.searchsorted(X.indptr, np.linspace(0, X.nnz, n_threads() + 1)[1:-1])
    firsts = [0, *cuts.tolist(), X.shape[0]]
    ranges = range(len(firsts) - 1)
    counts = np.zeros((len(ranges), X.shape[1]), dtype=X.indptr.dtype)
    in_threads(
        lambda i: count_columns(X.indices, X.indptr[firsts[i]], X.indptr[firsts[i + 1]], counts[i]), ranges
    )
    indptr, ends = np.empty(X.shape[1] + 1, dtype=X.indptr.dtype), np.empty_like(counts)
    column_ends(counts, indptr, ends)
    rows, values = np.empty(X.nnz, dtype=X.indices.dtype), np.empty(X.nnz)
    given = (X.indptr, X.indices, X.data)
    in_threads(lambda i: move_to_columns(*given, firsts[i], firsts[i + 1], ends[i], rows, values), ranges)
    return sp.csc_array((values, rows, indptr), shape=X.shape)


def _buckets(scores: Floats, sizes: Integers) -> npt.NDArray[np.int32]:
    """For each feature the position in ``sizes`` of the first size that includes it."""
    from maxdisc.decisions.compiled_parameters import deal

    require_finite(scores)
    bucket = np.empty(len(scores), dtype=np.int32)
    deal(best_first(scores), sizes, bucket)
    return bucket
