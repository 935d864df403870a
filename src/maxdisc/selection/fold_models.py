"""How many features to keep, and how much to smooth: chosen on folds, from sums that are already there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property, partial
from typing import Literal, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from scipy.signal import savgol_filter

from maxdisc.decisions.linear import LinearDecision, Reorder, ranked_decisions
from maxdisc.decisions.mixed import MixedDecision, ranked_model
from maxdisc.decisions.sweep import Counted, Sweep, Sweepable
from maxdisc.divergences.class_divergences import DIVERGENCES, Divergence, FeatureRanking
from maxdisc.divergences.redundancy import Overlap, Redundancy
from maxdisc.families import Family
from maxdisc.families.blocks import AnyFamily, AnyMoments
from maxdisc.moments.class_moments import ClassMoments, added, exclusive_totals
from maxdisc.moments.products import ClassProducts
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.block_matrix import stacked
from maxdisc.numerics.matrices import Floats, Integers, is_sparse
from maxdisc.rows.partitions import PartitionedRows
from maxdisc.rows.row_sources import ArrayRows, FixedFolds, Folds, RenumberedFolds, Rows
from maxdisc.rows.sampling import RowSample, RowTrial
from maxdisc.selection.held_out import BandTrial, HeldOut, unknown_by_bands

Rule = Literal["auto", "best", "one_se", "small"]
_Decision: TypeAlias = LinearDecision | MixedDecision

# The accuracy that ``rule="small"`` gives away, as a share.
ONE_POINT = 0.01
# Held-out losses are smoothed by straight lines through this many sizes (of 32 from ten to 30,000, a factor
# of eight): with fewer, the numbers of features that two halves of the rows select are further apart.
SMOOTHED_SIZES = 9
# Their noise is how far they are from lines through this many.
ROUGH_SIZES = 5
# The standard deviation of normal noise over its median size.
NORMAL_MEDIAN = 1.4826
# Held-out rows by which smoothings are compared: accuracies that differ by 1 % are then told apart.
ENOUGH_ROWS = 2000
# With at most this many folds, leave-one-fold-out sums are recomputed instead of cached to save memory, ...
MANY_FOLDS = 11
# ... unless all of them together are at most this many numbers; so few also serve all smoothings at once.
FEW_SUMS = 2**16
# A sample of dense rows of more bytes is not drawn: every model is then tried on the rows themselves.
LARGEST_SAMPLE = 2**28


@dataclass(frozen=True, eq=False)
class SelectionPath:
    """Held-out accuracy and log-loss for each number of kept features.

    Parameters
    ----------
    sizes : ndarray of shape (S,)
        Numbers of features, increasing.
    accuracy, log_loss : ndarray of shape (V, S)
        For each fold.
    weight : ndarray of shape (V,)
        Weight of each fold's held-out rows.
    n_rows : ndarray of shape (V,)
        How many rows of equal weight would tell as much.
    smoothing : Smoothing
        With which it was computed.

    Examples
    --------
    >>> import numpy as np
    >>> from maxdisc.selection.fold_models import SelectionPath
    >>> from maxdisc import Smoothing
    >>> accuracy = np.array([[0.70, 0.88, 0.90], [0.74, 0.92, 0.94]])
    >>> ones = np.ones(2)
    >>> path = SelectionPath(np.array([1, 5, 20]), accuracy, -np.log(accuracy), ones, ones, Smoothing(1.0))
    >>> path.best_size("best"), path.best_size("one_se")
    (20, 5)
    """

    sizes: Integers
    accuracy: Floats
    log_loss: Floats
    weight: Floats
    n_rows: Floats
    smoothing: Smoothing

    def __repr__(self) -> str:
        best = self.best_position()
        return (
            f"SelectionPath({len(self.sizes)} sizes from {self.sizes[0]} to {self.sizes[-1]}, "
            f"{len(self.weight)} folds, best accuracy {self.mean_accuracy[best]:.3f} at {self.sizes[best]})"
        )

    @classmethod
    def of(cls, sizes: Integers, sweeps: Sequence[Sweep], smoothing: Smoothing) -> SelectionPath:
        """Build from the counts of each fold; folds without rows are dropped."""
        full = [s for s in sweeps if s.weight > 0]
        if not full:
            raise ValueError("no fold has both rows to train on and rows held out: choose another cv.")
        weight = np.array([s.weight for s in full])
        accuracy = np.minimum(np.stack([s.correct for s in full]) / weight[:, None], 1.0)
        loss = np.stack([s.loss for s in full]) / weight[:, None]
        # Squares of tiny weights may underflow; then the unit of weight is one row.
        squares = np.array([s.squares for s in full])
        n_rows = weight / np.where(squares > 0, squares / weight, 1.0)
        return cls(sizes, accuracy, loss, weight, n_rows, smoothing)

    @classmethod
    def by_rows(
        cls,
        sizes: Integers,
        correct: Floats,
        losses: Floats,
        weights: Floats,
        folds: Integers,
        smoothing: Smoothing,
    ) -> SelectionPath:
        """Build from correctness and losses (S, n) of rows of equal or different weight, and their folds."""
        numbers, places = np.unique(folds, return_inverse=True)
        member = (places == np.arange(len(numbers))[:, None]) * weights
        weight = member.sum(axis=1)
        # Squares of tiny weights vanish, so weights are counted in units of the largest of their fold.
        share = member / member.max(axis=1, keepdims=True)
        n_rows = share.sum(axis=1) ** 2 / (share**2).sum(axis=1)
        accuracy, log_loss = ((member @ values.T) / weight[:, None] for values in (correct, losses))
        return cls(sizes, np.clip(accuracy, 0.0, 1.0), log_loss, weight, n_rows, smoothing)

    def joined(self, other: SelectionPath) -> SelectionPath:
        """Return the path over the folds of both; sizes and smoothing must be the same."""
        pairs = (
            (self.accuracy, other.accuracy),
            (self.log_loss, other.log_loss),
            (self.weight, other.weight),
            (self.n_rows, other.n_rows),
        )
        accuracy, log_loss, weight, n_rows = (np.concatenate(pair) for pair in pairs)
        return SelectionPath(self.sizes, accuracy, log_loss, weight, n_rows, self.smoothing)

    @property
    def mean_accuracy(self) -> Floats:
        """Share of all held-out rows classified correctly, shape (S,)."""
        return np.average(self.accuracy, axis=0, weights=self.weight)

    @property
    def mean_log_loss(self) -> Floats:
        """Log-loss over all held-out rows, shape (S,)."""
        return np.average(self.log_loss, axis=0, weights=self.weight)

    @property
    def standard_error(self) -> Floats:
        """Standard error of the mean accuracy over folds (over rows, for a single fold), shape (S,)."""
        n_folds = len(self.weight)
        if n_folds > 1:
            return self.accuracy.std(axis=0, ddof=1) / np.sqrt(n_folds)
        return np.sqrt(self.accuracy[0] * (1 - self.accuracy[0]) / self.n_rows[0])

    def best_position(self, rule: Rule = "best", by: Literal["accuracy", "log_loss"] = "accuracy") -> int:
        """Return where in ``sizes`` the rule points."""
        if by == "log_loss":
            return self._least_loss(rule)
        accuracy = self.mean_accuracy
        # Sums of weights in another order must not break ties.
        top = int(np.argmax(accuracy >= accuracy.max() - 1e-12))
        return self.fewer(top, rule)

    def fewer(self, best: int, rule: Rule) -> int:
        """Return the first position whose accuracy is near enough to that of the best one."""
        if rule not in ("one_se", "small"):
            return best
        accuracy = self.mean_accuracy
        less = ONE_POINT if rule == "small" else self.standard_error[best]
        return int(np.argmax(accuracy >= accuracy[best] - less - 1e-12))

    def _least_loss(self, rule: Rule) -> int:
        """Return the first position with the least log-loss, or within one standard error."""
        if rule == "small":
            return self.best_position(rule)
        loss = np.nan_to_num(self.mean_log_loss, nan=np.inf)
        least = int(np.argmin(loss))
        # Parameters are found to so many digits.
        bound = loss[least] * (1 + 1e-6) + 1e-12
        if rule == "one_se" and len(self.weight) > 1:
            # Folds differ more than numbers of features do: it is the differences that count.
            apart = (self.log_loss - self.log_loss[:, least, None]).std(axis=0, ddof=1)
            bound = bound + apart / np.sqrt(len(self.weight))
        return int(np.argmax(loss <= bound))

    def best_size(self, rule: Rule = "best") -> int:
        """Return the number of features to keep.

        Parameters
        ----------
        rule : {"best", "one_se", "small"}
            The smallest number at the highest accuracy (the paper's), the smallest within one standard
            error of it, or the smallest within one point of it. "auto" is "best".
        """
        return int(self.sizes[self.best_position(rule)])


def fewest_features(losses: Floats, correct: Floats, weights: Floats, rule: Rule) -> int:
    """Return the first size that is as good as the best one, by losses and correctness (S, n) of rows.

    Differences of the same rows have far less noise than losses have. A row of weight 2 is two rows.
    """
    total = weights.sum()
    if rule == "small":
        accuracy = correct @ weights / total
        return int(np.argmax(accuracy >= accuracy.max() - ONE_POINT))
    # Smoothed over sizes, so that a lucky one is not taken for the best.
    smooth = _local_lines(losses, SMOOTHED_SIZES)
    best = int(np.argmin(smooth @ weights))
    if rule == "best":
        return best
    apart = smooth - smooth[best]
    mean = apart @ weights / total
    variance = np.maximum((apart**2) @ weights / total - mean**2, 0.0) / total
    # Neighbouring sizes also differ by chance, such as that of where bands end. The median is not that of a
    # steep beginning.
    path = losses @ weights / total
    rough = NORMAL_MEDIAN * np.median(np.abs(path - _local_lines(path, ROUGH_SIZES)))
    return int(np.argmax(mean <= np.sqrt(variance + rough**2) + 1e-12))


def _local_lines(values: Floats, width: int) -> Floats:
    """Smooth values (S, ...) by least-squares lines through ``width`` neighbours, or as many as there are."""
    width = min(width, len(values) - 1 + len(values) % 2)
    return np.asarray(savgol_filter(values, width, min(1, width - 1), axis=0))


def size_grid(n_features: int, n_small: int = 8, ratio: float = 1.25) -> Integers:
    """Return numbers of features: every small one, then growing steps up to all (51 sizes for 100,000)."""
    sizes = list(range(1, min(n_small, n_features) + 1))
    while sizes[-1] < n_features:
        sizes.append(min(n_features, max(sizes[-1] + 1, round(sizes[-1] * ratio))))
    return np.array(sizes)


def refined_sizes(n_features: int, count: int = 32, least: int = 10) -> Integers:
    """Return numbers of features from ten to all, in equal ratios."""
    return np.unique(np.round(np.geomspace(min(least, n_features), n_features, count)).astype(np.intp))


@dataclass(frozen=True, eq=False)
class Choice:
    """Choices made before the final fit: smoothing, number of features, path and stability."""

    smoothing: Smoothing
    size: int
    path: SelectionPath | None = None
    stability: Floats | None = None  # (D,)


@dataclass(frozen=True, eq=False)
class FoldModels:
    """Models of every fold, each from the sum of the *other* folds' moments.

    There is one plan if folds partition the rows, and one per split if splits overlap.
    """

    rows: Rows
    family: AnyFamily
    divergence: Divergence
    prior: Floats | None
    plans: Sequence[Folds]
    parts: Sequence[list[AnyMoments]]
    redundancy: Redundancy | None = None

    @classmethod
    def of(
        cls,
        rows: Rows,
        family: AnyFamily,
        divergence: Divergence,
        prior: Floats | None,
        plans: Sequence[Folds],
        redundancy: Redundancy | None = None,
        most: int = 0,
    ) -> FoldModels:
        """Count the moments of every fold, in one pass for each plan.

        If so many held-out rows of a fold will be looked at, partitions deliver them in the same pass.
        """
        if not isinstance(rows, PartitionedRows) or len(plans) != 1 or not most:
            # Rows in memory may be of several families.
            parts = [list[AnyMoments](rows.moments(cast(Family, family), p)) for p in plans]
            return cls(rows, family, divergence, prior, plans, parts, redundancy)
        most = most if _is_held_easily(rows, plans[0], most) else 0
        moments, drawn = rows.counted(cast(Family, family), plans[0], most)
        models = cls(rows, family, divergence, prior, plans, [list[AnyMoments](moments)], redundancy)
        if drawn:
            models._samples[most] = _in_memory(drawn, rows.n_classes)
        return models

    @property
    def n_features(self) -> int:
        """D, the number of features."""
        return self.parts[0][0].n_features

    def total(self) -> AnyMoments:
        """Return the moments of all the rows; splits that leave some out take a pass of their own."""
        if any(folds.leaves_out for folds in self.plans):
            return self.rows.moments(cast(Family, self.family))[0]
        return added(self.parts[0])

    @property
    def held(self) -> Floats:
        """How many rows (of equal weight) each fold holds out, those of all plans one after the other."""
        return np.array([part.n_rows for folds, parts in self._plans for part in parts[: folds.count]])

    def paths(
        self, sizes: Integers, smoothings: Sequence[Smoothing], chosen: range | None = None
    ) -> list[SelectionPath]:
        """Sweep the held-out rows of every fold, or of those chosen, for each smoothing."""
        self._prepare(smoothings)
        return [self.path(sizes, smoothing, chosen) for smoothing in smoothings]

    def path(self, sizes: Integers, smoothing: Smoothing, chosen: range | None = None) -> SelectionPath:
        """Sweep the held-out rows of every fold, or of those chosen."""
        sweeps = self._swept(sizes, smoothing, chosen, lambda decision: decision)
        return SelectionPath.of(sizes, list(sweeps.values()), smoothing)

    def held_out(
        self, edges: Integers, smoothings: Sequence[Smoothing], most: int, chosen: range | None = None
    ) -> list[dict[int, HeldOut]]:
        """Evidence of the held-out rows, by the number of the fold, for each smoothing; see ``Trials``."""
        self._prepare(smoothings)
        sample = self._sampled(most)
        if sample is not None:
            most = sample[0].X.shape[0]
        whole = sample is None and isinstance(self.rows, ArrayRows)
        return [
            self._swept(edges, s, chosen, lambda decision: BandTrial(decision, most, whole), sample)
            for s in smoothings
        ]

    def unknown(
        self, edges: Integers, smoothing: Smoothing, most: int, held: dict[int, HeldOut]
    ) -> dict[int, Floats] | None:
        """Return the evidence for unknown classes, where the rows are in memory; see ``Trials``."""
        sample = self._sampled(most)
        rows = self.rows if sample is None else sample[0]
        if not isinstance(rows, ArrayRows):
            return None
        out: dict[int, Floats] = {}
        before = 0
        for plan, folds in enumerate(self.plans):
            training_of = self._training_of(plan)
            for fold in range(folds.count):
                part = held.get(before + fold)
                if part is not None and part.bands is not None:
                    given = (training_of(fold), smoothing, part.bands, len(edges), rows.X[part.rows])
                    out[before + fold] = unknown_by_bands(self.family, *given)
            before += folds.count
        return out

    def _sampled(self, most: int) -> tuple[ArrayRows, Sequence[Folds]] | None:
        """Held-out rows of every fold, in memory, and their folds: one pass for all models tried on them.

        None where the rows are in memory already, or would take too much of it.
        """
        if isinstance(self.rows, ArrayRows) or len(self.plans) != 1:
            return None
        if most not in self._samples:
            (folds,) = self.plans
            if not _is_held_easily(self.rows, folds, most):
                return None
            drawn = self.rows.sweep(lambda _: RowTrial(most), np.array([1]), folds)
            self._samples[most] = _in_memory(drawn, self.rows.n_classes)
        return self._samples[most]

    @cached_property
    def _samples(self) -> dict[int, tuple[ArrayRows, Sequence[Folds]]]:
        """The samples that were drawn, by how many rows of a fold."""
        return {}

    def places(self, fold: int, smoothing: Smoothing, sizes: Integers) -> Integers:
        """Return where in ``sizes`` the first one is that selects each feature; there must be one plan."""
        self._prepare((smoothing,))
        order = self._decision(self._training_of(0), sizes, smoothing, 0, 0, fold).columns
        out = np.full(self.n_features, len(sizes))
        out[order] = np.searchsorted(sizes, np.arange(len(order)), side="right")
        return out

    def _training_of(self, plan: int) -> Callable[[int], AnyMoments]:
        """From a fold of a plan to the moments of its training rows."""
        if plan not in self._training:
            parts = self.parts[plan]
            training_of = _training_of(parts)
            if len(parts) * len(parts[0].weight) * parts[0].n_features > FEW_SUMS:
                return training_of
            self._training[plan] = cache(training_of)
        return self._training[plan]

    @cached_property
    def _training(self) -> dict[int, Callable[[int], AnyMoments]]:
        """Small training sums that have been computed, by plan."""
        return {}

    def _prepare(self, smoothings: Sequence[Smoothing]) -> None:
        self._beside.update(dict.fromkeys(smoothings, tuple(smoothings)))
        if self.redundancy is not None and not set(smoothings) <= self._shared.keys():
            self._share(smoothings)

    def _swept(
        self,
        sizes: Integers,
        smoothing: Smoothing,
        chosen: range | None,
        trial: Callable[[_Decision], Sweepable[Counted]],
        sample: tuple[Rows, Sequence[Folds]] | None = None,
    ) -> dict[int, Counted]:
        """Return the sweep of every (chosen) fold's decision over its held-out rows."""
        out: dict[int, Counted] = {}
        before = 0
        rows, plans = sample or (self.rows, self.plans)
        for plan, (folds, parts) in enumerate(zip(plans, self.parts, strict=True)):
            here = range(folds.count) if chosen is None else _common(chosen, before, folds.count)
            before += folds.count
            if not here:
                continue
            training_of = self._training_of(plan)
            decision_of = partial(self._decision, training_of, sizes, smoothing, plan, here.start)
            some = RenumberedFolds.some(folds, here)

            def trial_of(place: int, of: Callable[[int], _Decision] = decision_of) -> Sweepable[Counted]:
                return trial(of(place))

            swept = rows.sweep(trial_of, sizes, some)
            for fold, counted in zip(here, swept, strict=True):
                if any(part.weight.any() for f, part in enumerate(parts) if f != fold):
                    out[before - folds.count + fold] = counted
        return out

    @property
    def _plans(self) -> list[tuple[Folds, list[AnyMoments]]]:
        return list(zip(self.plans, self.parts, strict=True))

    def _decision(
        self,
        training_of: Callable[[int], AnyMoments],
        sizes: Integers,
        smoothing: Smoothing,
        plan: int,
        first: int,
        place: int,
    ) -> _Decision:
        fold, size = first + place, int(sizes[-1])
        training, reorder = training_of(fold), None
        if self.redundancy is not None:
            columns, overlaps = self._shared[smoothing][plan]
            reorder = partial(self.redundancy.reranked, columns=columns, overlap=overlaps[fold])
        ranking, decision = self._ranked(training, smoothing, size, reorder, (plan, fold))
        if training.weight.any():
            self._orders[smoothing, plan, fold] = ranking.order[:size].astype(np.int32)
        return decision

    def _ranked(
        self,
        training: AnyMoments,
        smoothing: Smoothing,
        size: int,
        reorder: Reorder | None,
        place: tuple[int, int],
    ) -> tuple[FeatureRanking, _Decision]:
        """Return the model of some training rows; small ones are made for all smoothings tried at once."""
        group = self._beside.get(smoothing, ())
        if (
            len(group) < 2
            or reorder is not None
            or not isinstance(training, ClassMoments)
            or len(group) * training.sums.size > FEW_SUMS
            or self.divergence not in DIVERGENCES.values()
            or any(s.target != "own" for s in group)
        ):
            return ranked_model(self.family, training, smoothing, self.divergence, self.prior, size, reorder)
        if (place, smoothing, size) not in self._ready:
            family = cast(Family, self.family)
            models = ranked_decisions(family, training, group, self.divergence, self.prior, size)
            self._ready.update({(place, s, size): m for s, m in zip(group, models, strict=True)})
        return self._ready.pop((place, smoothing, size))

    @cached_property
    def _beside(self) -> dict[Smoothing, tuple[Smoothing, ...]]:
        """The smoothings that each is tried beside."""
        return {}

    @cached_property
    def _ready(self) -> dict[tuple[tuple[int, int], Smoothing, int], tuple[FeatureRanking, LinearDecision]]:
        """Models that were made with others, until they are asked for; by plan and fold."""
        return {}

    @cached_property
    def _orders(self) -> dict[tuple[Smoothing, int, int], npt.NDArray[np.int32]]:
        """The best features of every model that was tried, by smoothing, plan and fold."""
        return {}

    def with_stability(self, choice: Choice) -> Choice:
        """Return what was chosen on these folds, with how many of their models keep each feature."""
        kept = [order[: choice.size] for (s, *_), order in self._orders.items() if s == choice.smoothing]
        return choice if not kept else replace(choice, stability=share_of_folds(kept, self.n_features))

    @cached_property
    def _shared(self) -> dict[Smoothing, list[tuple[Integers, list[Overlap]]]]:
        """By smoothing and plan: candidates, and what they share in the training rows of each fold."""
        return {}

    def _share(self, smoothings: Sequence[Smoothing]) -> None:
        """One more pass for each plan, over the columns that any fold's model may re-rank."""
        assert self.redundancy is not None
        # What is counted of one plan, and what follows for all of them, is held at the same time.
        counts = [folds.count for folds in self.plans]
        n_parts = sum(counts) + max(counts) + 1
        found = []
        for plan, folds in enumerate(self.plans):
            training_of = self._training_of(plan)
            orders = []
            for training in map(training_of, range(folds.count)):
                given = [(self.family, training, s, self.divergence, self.prior, 1) for s in smoothings]
                orders += [ranked_model(*g)[0].order[: self.redundancy.pool] for g in given]
            columns = self.redundancy.candidates(orders, n_parts)
            if not len(columns):
                found.append((columns, [Overlap.none()] * folds.count))
                continue
            counted = self.rows.products(columns, folds)
            found.append((columns, [Overlap.of(_without(counted, f)) for f in range(folds.count)]))
        self._shared.clear()
        self._shared.update(dict.fromkeys(smoothings, found))


def share_of_folds(kept: Sequence[npt.NDArray[np.integer]], n_features: int) -> Floats:
    """Return the share of the lists that contain each feature, shape (D,)."""
    return np.bincount(np.concatenate(kept), minlength=n_features) / len(kept)


def _is_held_easily(rows: Rows, folds: Folds, most: int) -> bool:
    """Return whether a sample of that many rows of each fold takes little memory; sparse rows do."""
    example = rows.example()
    return is_sparse(example) or 8 * example.shape[1] * most * folds.count <= LARGEST_SAMPLE


def _in_memory(drawn: Sequence[RowSample], n_classes: int) -> tuple[ArrayRows, Sequence[Folds]]:
    """Return the samples of all folds as rows, and which of them are whose."""
    rows = ArrayRows(
        stacked([part.X for part in drawn]),
        np.concatenate([part.codes for part in drawn]),
        n_classes,
        np.concatenate([part.level_weights() for part in drawn]),
    )
    of_row = np.repeat(np.arange(len(drawn)), [len(part.codes) for part in drawn])
    return rows, [FixedFolds(of_row, len(drawn))]


def _without(parts: list[ClassProducts], fold: int) -> ClassProducts:
    return ClassProducts.total(part for f, part in enumerate(parts) if f != fold)


def _training_of(parts: list[AnyMoments]) -> Callable[[int], AnyMoments]:
    """From a fold to the sum of the others: added up when asked for, or all at once if they are many."""
    if len(parts) > MANY_FOLDS:
        return exclusive_totals(parts).__getitem__
    return lambda fold: added(part for f, part in enumerate(parts) if f != fold)


def _common(chosen: range, before: int, count: int) -> range:
    """Return those of ``count`` folds that are chosen, where ``before`` of other plans come first."""
    return range(max(chosen.start - before, 0), min(chosen.stop - before, count))


class HeldOutTrials(Protocol):
    """Models of folds that score the rows which they hold out."""

    @property
    def held(self) -> Floats:
        """How many rows (of equal weight) each fold holds out."""

    def held_out(
        self, edges: Integers, smoothings: Sequence[Smoothing], most: int, chosen: range | None = None
    ) -> list[dict[int, HeldOut]]:
        """Return the evidence of bands of features for held-out rows, at most ``most`` of each fold.

        For each smoothing, by the number of the fold; folds without training rows are left out.
        """

    def unknown(
        self, edges: Integers, smoothing: Smoothing, most: int, held: dict[int, HeldOut]
    ) -> dict[int, Floats] | None:
        """Return the evidence (n, 2, G) of the same rows for unknown classes, by the number of the fold.

        Of one smoothing only: it takes as long as two more classes. None where the rows are out of reach.
        """


class Trials(HeldOutTrials, Protocol):
    """Models that can be tried on folds: :class:`FoldModels`, or whatever does the same faster."""

    def paths(
        self, sizes: Integers, smoothings: Sequence[Smoothing], chosen: range | None = None
    ) -> list[SelectionPath]:
        """Sweep the held-out rows of every fold, or of those chosen, for each smoothing."""


def enough_folds(models: HeldOutTrials, n_tried: int) -> int:
    """Return how many of the first folds hold out enough rows to compare that many smoothings."""
    held = models.held
    if n_tried < 2:
        return len(held)
    return min(int(np.searchsorted(np.cumsum(held), ENOUGH_ROWS)) + 1, len(held))


def choose(models: Trials, smoothings: Sequence[Smoothing], sizes: Integers, rule: Rule = "best") -> Choice:
    """Return the best smoothing and the number of features that ``rule`` picks on its path.

    Smoothings are compared on as few folds as needed to separate them; the best is then evaluated on all
    folds.
    """
    held = models.held
    enough = enough_folds(models, len(smoothings))
    paths = models.paths(sizes, smoothings, range(enough))
    best = max(paths, key=lambda path: path.mean_accuracy.max())
    if held[enough:].any():
        (others,) = models.paths(sizes, (best.smoothing,), range(enough, len(held)))
        best = best.joined(others)
    return Choice(best.smoothing, best.best_size(rule), best)
