"""Joint models of every transform, shrinkage and size, weighed on folds by how well each predicts alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from maxdisc.conditional.corrections import ScaledRows, correct
from maxdisc.conditional.shared_weights import doubt
from maxdisc.decisions.joint import FAR, POOLED, Joint, JointSample, LogTransform, Shrinkage
from maxdisc.decisions.joint_average import AveragedDecision, AveragedEvidence, LinearForm, cells, finite
from maxdisc.decisions.sweep import Sweep, counted, trusted_losses
from maxdisc.divergences.class_divergences import FeatureRanking
from maxdisc.numerics.matrices import Floats, Integers, Matrix, blocks
from maxdisc.rows.row_sources import ArrayRows, BatchRows, Folds, Rows
from maxdisc.rows.sampling import content_hashes
from maxdisc.selection.fold_models import Rule, SelectionPath
from maxdisc.selection.held_out import DensityTrial, HeldOut, enough_rows
from maxdisc.selection.joint_fold_models import TRIED, FoldSamples, JointModels

#: Ridges of the shared covariance in units of K / N: r gives the shrinkage l / (1 + l), with l = r K / N.
RIDGES: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, np.inf)
#: Ridges of the conditional models, on weights of features whose squares sum to about 1 in a row.
CONDITIONAL_RIDGES: tuple[float, ...] = (0.1, 0.01)
#: To what share of the gradient at 0 they are solved: on folds, where only losses count, and on all rows.
TOLERANCES = (1e-2, 1e-4)
MOST_STEPS = 300
#: Conditional models have all features, and about so many.
CONDITIONAL_SIZE = 300
#: What scores are multiplied with; the one of least log-loss is taken.
TRUSTS: tuple[float, ...] = tuple(np.geomspace(0.002, 16, 28).tolist())
#: A model weighs exp(-SHARPNESS n log-loss): 1 would count n rows as if models differed by nothing but luck.
SHARPNESS = 0.3
#: Models that weigh less than this share of the heaviest are dropped.
LEAST_WEIGHT = 1e-3

#: Powers of the prior that are tried beyond that of the average; held-out rows must ask for one far from 0.
EXPONENTS = np.linspace(-2.0, 1.0, 31)

#: Scores of all models on held-out rows are kept up to so many; beyond, a second pass computes them again.
MOST_SCORES = 2**25

#: A transform, and whether each class has a covariance of its own.
Candidate = tuple[str | None, bool]


@dataclass(frozen=True)
class Member:
    """One averaged model: transform, kind, number of features, and shrinkage or ridge."""

    candidate: Candidate
    kind: Literal["joint", "conditional"]
    size: int
    strength: Shrinkage


@dataclass(frozen=True, eq=False)
class Average:
    """Average of joint models, made from all the rows."""

    ranking: FeatureRanking
    decision: AveragedDecision
    joint: Joint
    path: SelectionPath
    evidence: AveragedEvidence
    #: Log densities of held-out rows under the best density of their fold, and its trust.
    held: HeldOut
    trust: float


def weights_of(losses: Floats, n_rows: float) -> Floats:
    """Return weights (M,) that sum to 1, from mean log-losses on ``n_rows`` held-out rows."""
    weights = np.exp(-SHARPNESS * n_rows * (losses - losses.min()))
    weights = np.where(weights < LEAST_WEIGHT, 0.0, weights)
    return weights / weights.sum()


def averaged_sizes(largest: int) -> Integers:
    """Return numbers of features, each about three times the last, up to all."""
    steps = [step * 10**power for power in range(9) for step in (1, 3)]
    return np.array([*(k for k in steps if min(30, largest / 10) <= k < largest / 1.5), largest])


@dataclass(frozen=True, eq=False)
class AveragedModels:
    """Candidate models of an average."""

    models: JointModels
    sizes: Integers  # (S,)
    refined: bool = False

    def __post_init__(self) -> None:
        if self.refined and not isinstance(self.models.rows, ArrayRows):
            raise ValueError(
                "evidence='refined' looks at the rows many times, and these come in batches: "
                "use evidence='calibrated'."
            )

    @cached_property
    def members(self) -> list[Member]:
        """Every model, candidate by candidate."""
        out = []
        for candidate in self.models.candidates:
            for size in self.sizes.tolist():
                out += [Member(candidate, "joint", size, strength) for strength in self._strengths]
            out += [Member(candidate, "conditional", k, r) for k, r in self.conditional(candidate)]
        return out

    def conditional(self, candidate: Candidate) -> list[tuple[int, float]]:
        """Sizes and ridges of the conditional models of a candidate, the strongest ridge first."""
        if not self.refined or candidate[1]:
            return []
        near = self.sizes[np.argmin(np.abs(np.log(self.sizes / CONDITIONAL_SIZE)))]
        sizes = np.unique([near, self.sizes[-1]]).tolist()
        return [(size, ridge) for size in sizes for ridge in CONDITIONAL_RIDGES]

    @property
    def _strengths(self) -> Sequence[Shrinkage]:
        joint = self.models.joint
        if joint.shrinkage != "auto":
            return (joint.shrinkage,)
        return RIDGES if joint.covariance == "shared" else TRIED

    def shrinkages(self, sample: JointSample, size: int) -> list[Shrinkage]:
        """Return the shrinkage of each strength, for a density of a given number of features."""
        joint = self.models.joint
        if joint.shrinkage != "auto" or joint.covariance != "shared":
            return list(self._strengths)
        rows = float(sample.weight.sum()) * self._rows_by_weight
        ridges = np.array(RIDGES) * size / max(rows, np.finfo(np.float64).tiny)
        with np.errstate(invalid="ignore"):
            return np.where(np.isinf(ridges), 1.0, ridges / (1 + ridges)).tolist()

    @cached_property
    def _weight_sums(self) -> tuple[float, float]:
        """The sum of all weights, and of their squares."""
        total = squares = 0.0
        for w in _row_weights(self.models.rows):
            total, squares = total + float(w.sum()), squares + float(w @ w)
        return total, squares

    @property
    def _rows_by_weight(self) -> float:
        """How many rows there are to a unit of weight.

        A row of weight 2 is two rows; weights that are far below 1 are as many rows as they would be if they
        were equal.
        """
        total, squares = self._weight_sums
        return max(1.0, total / squares) if squares > 0 else 1.0

    @property
    def doubt(self) -> float:
        """By how much classes are doubted: see :func:`maxdisc.conditional.shared_weights.doubt`."""
        return doubt(self._weight_sums[0] * self._rows_by_weight)

    @cached_property
    def _log_shares(self) -> Floats:
        """Logs of the shares of the classes (C,), about their mean; 0 for a class without rows."""
        weight = self.models.moments.weight
        logs = np.log(np.where(weight > 0, weight, 1.0))
        return np.where(weight > 0, logs - logs[weight > 0].mean(), 0.0)

    @cached_property
    def remembered(self) -> bool:
        """Whether the scores of held-out rows are kept for the second pass."""
        rows = self.models.rows
        if not isinstance(rows, ArrayRows):
            return False
        n_held = sum(int(np.count_nonzero(rows.dealt(folds) >= 0)) for folds in self.models.fixed_plans)
        return n_held * len(self.members) * rows.n_classes <= MOST_SCORES

    @cached_property
    def _views(self) -> dict[str | None, Rows]:
        return {transform: self.models.view(transform) for transform, _ in self.models.candidates}

    def samples(self, folds: Folds | None, size: int) -> dict[Candidate, FoldSamples]:
        """Return what the models of every fold are made from, for each candidate."""
        return {
            (transform, per_class): FoldSamples(
                self.models, self._views[transform], folds, size, per_class, transform
            )
            for transform, per_class in self.models.candidates
        }

    def conditional_fits(
        self, samples: FoldSamples, fold: int | None, sample: JointSample, candidate: Candidate
    ) -> Iterator[tuple[Floats, Floats]]:
        """Weights (C, K) and biases (C,), beyond the log prior, of the conditional models of a candidate.

        Of those that have no more features than the sample.
        """
        wanted = [(k, ridge) for k, ridge in self.conditional(candidate) if k <= len(sample.columns)]
        if not wanted:
            return
        z, members = samples.training(fold, sample)
        weights = members.weights * self._rows_by_weight
        for size in dict.fromkeys(size for size, _ in wanted):
            ridges = [ridge for k, ridge in wanted if k == size]
            given = (z[:, :size], members.groups, weights, len(sample.center), ridges)
            yield from _conditional(*given, TOLERANCES[fold is None])

    def average(self, rule: Rule = "best") -> Average | None:
        """Weigh all models on the folds and average them, made from all rows; None if none can be compared.

        Each model has the trust that makes its pooled held-out log-loss least, and weighs as
        :func:`weights_of` says. If some may have a covariance for each class, the best of all is taken alone.
        The rule "one_se" leaves out models with more features than the fewest within one standard error of
        the accuracy of the best.
        """
        trials = [_Trials(self, folds) for folds in self.models.fixed_plans]
        sweeps = [counts for trial in trials for counts in trial.sweeps(len(self.members))]
        weight = sum(counts.weight for counts in sweeps)
        if not weight > 0:
            return None
        by_trust = np.sum([counts.loss for counts in sweeps], axis=0) / weight
        if np.ptp(by_trust) <= 1e-12 * np.abs(by_trust).max():
            return None
        chosen, losses = by_trust.argmin(axis=0), by_trust.min(axis=0)
        n_rows = self._n_held(sweeps)
        densities = np.array([member.kind == "joint" for member in self.members])
        best = int(np.argmin(np.where(densities, losses, np.inf)))
        path = self._path(sweeps, best, chosen)
        if rule in ("one_se", "small"):
            few = self.sizes[path.fewer(int(np.searchsorted(self.sizes, self.members[best].size)), rule)]
            losses = np.where([member.size <= few for member in self.members], losses, np.inf)
            best = int(np.argmin(np.where(densities, losses, np.inf)))
        alone = any(per_class for _, per_class in self.models.candidates)
        weights = np.eye(len(losses))[best] if alone else weights_of(losses, n_rows)
        trusts = np.array(TRUSTS)[chosen]
        judged = self._judged(trials, weights * trusts, n_rows, alone)
        made = self._made(weights, trusts, best, judged.exponent)
        if made is None:  # classes so far apart that only distances keep their digits
            weights = np.eye(len(losses))[best]
            judged = self._judged(trials, weights * trusts, n_rows, alone=True)
            made = self._made(weights, trusts, best, judged.exponent)
            assert made is not None
        ranking, decision, joint, names = made
        order = np.argsort(-weights, kind="stable")[: np.count_nonzero(weights)]
        evidence = AveragedEvidence(
            tuple(names[i] for i in order),
            weights[order],
            trusts[order],
            judged.log_loss,
            judged.accuracy,
            n_rows,
            judged.exponent,
        )
        return Average(
            ranking, decision, joint, path, evidence, self._held_densities(best, trials), float(trusts[best])
        )

    def _judged(self, trials: Sequence[_Trials], shares: Floats, n_rows: float, alone: bool) -> _Judged:
        """Return how good the sum of all scores is on held-out rows, and the exponent of the prior for it.

        The exponent is averaged, like the models, but by their whole likelihood: what the scores of the same
        rows lose by it is no matter of luck. It stays near 0 where held-out rows do not tell.
        """
        exponents = np.zeros(1) if alone else EXPONENTS
        found = sum((trial.judged(shares, exponents) for trial in trials), Sweep.zero(len(exponents)))
        losses, accuracies = found.loss / found.weight, found.correct / found.weight
        log_weights = -n_rows * losses - 0.5 * exponents**2
        posterior = np.exp(log_weights - log_weights.max())
        exponent = float(posterior @ exponents / posterior.sum())
        figures = [float(np.interp(exponent, exponents, values)) for values in (losses, accuracies)]
        return _Judged(exponent, figures[0], min(figures[1], 1.0))

    def _held_densities(self, best: int, trials: Sequence[_Trials]) -> HeldOut:
        """Return log densities of held-out rows in all classes and two unknown ones, shape (n, C + 2, 1)."""
        member, rows = self.members[best], self.models.rows
        most = enough_rows(rows.n_classes, sum(folds.count for folds in self.models.plans))
        parts: list[HeldOut] = []
        for trial in trials:
            samples = trial.samples[member.candidate]

            def trial_of(fold: int, samples: FoldSamples = samples) -> DensityTrial:
                sample = samples.of(fold)[1]
                shrinkage = self.shrinkages(sample, member.size)[self._strengths.index(member.strength)]
                return DensityTrial(sample.decision(member.size, shrinkage), most)

            found = rows.sweep(trial_of, np.array([member.size]), trial.folds)
            parts += [part for fold, part in enumerate(found) if samples.trained(fold)]
        return HeldOut.joined(parts)

    def _n_held(self, sweeps: Sequence[Sweep]) -> float:
        """Return how many rows were held out, each counted once however often it was."""
        rows = self.models.rows
        if not isinstance(rows, ArrayRows):
            return sum(counts.weight for counts in sweeps) * self._rows_by_weight
        held = np.any([rows.dealt(folds) >= 0 for folds in self.models.fixed_plans], axis=0)
        (weights,) = _row_weights(rows)
        return float(weights[held].sum()) * self._rows_by_weight

    def _path(self, sweeps: Sequence[Sweep], best: int, chosen: Integers) -> SelectionPath:
        """Return the path over sizes at the transform and strength of a member."""
        same = [
            i for i, m in enumerate(self.members) if replace(m, size=0) == replace(self.members[best], size=0)
        ]
        counts = [Sweep(w.correct[same], w.loss[chosen[same], same], w.weight, w.squares) for w in sweeps]
        return SelectionPath.of(self.sizes, counts, self.models.smoothing or POOLED)

    def _made(
        self, weights: Floats, trusts: Floats, best: int, exponent: float
    ) -> tuple[FeatureRanking, AveragedDecision, Joint, dict[int, str]] | None:
        """Return the average from all the rows, and the names of its models; None if it is not linear."""
        used = [i for i in range(len(weights)) if weights[i] > 0 or i == best]
        size = max(self.members[i].size for i in used)
        single = np.count_nonzero(weights) == 1
        forms: list[LinearForm] = []
        names: dict[int, str] = {}
        constant = np.zeros(self.models.rows.n_classes)
        for candidate, samples in self.samples(None, size).items():
            here = [i for i in used if self.members[i].candidate == candidate]
            if not here:
                continue
            ranked, sample = samples.of(None)
            width = max(self.members[i].size for i in here)
            linear, baseline = np.zeros((2, len(sample.center), width))
            fits: dict[tuple[int, Shrinkage], tuple[Floats, Floats]] = {}
            if any(self.members[i].kind == "conditional" for i in here):
                found = self.conditional_fits(samples, None, sample, candidate)
                fits.update(zip(self.conditional(candidate), found, strict=False))
            for i in here:
                member, share = self.members[i], weights[i] * trusts[i]
                k = member.size
                if member.kind == "conditional":
                    w, bias = fits[k, member.strength]
                    linear[:, :k] += share * w
                    constant += share * bias
                    names[i] = _named(member, f"conditional, ridge {member.strength:g}")
                    continue
                shrinkage = self.shrinkages(sample, k)[self._strengths.index(member.strength)]
                told = f"{shrinkage:.3g}" if isinstance(shrinkage, float) else shrinkage
                names[i] = _named(member, f"shrinkage {told}")
                if i == best:
                    density, ranking = sample.decision(k, shrinkage), ranked
                    joint = self._settled(candidate, shrinkage)
                if weights[i] > 0 and not candidate[1]:
                    w = sample.weights(k, shrinkage)
                    half = 0.5 * w * sample.center[:, :k]
                    if not (half.sum(axis=1) <= FAR).all():
                        if not single:
                            return None
                        continue
                    linear[:, :k] += share * w
                    baseline[:, :k] -= share * half
            if linear.any():
                unit = None if sample.unit is None else sample.unit[:width]
                given = (sample.columns[:width], sample.origin[:width], sample.rate[:width])
                forms.append(LinearForm(*given, linear, baseline, unit))
        # What belongs to no feature: evenly to all.
        constant += (float(weights @ trusts) - 1) * finite(density.log_prior) + exponent * self._log_shares
        total = sum(len(form.columns) for form in forms)
        even = [replace(form, baseline=form.baseline + constant[:, None] / total) for form in forms]
        kept = np.isin(ranking.order, np.concatenate([density.columns, *(form.columns for form in forms)]))
        ranking = replace(ranking, order=np.concatenate([ranking.order[kept], ranking.order[~kept]]))
        columns = ranking.order[: np.count_nonzero(kept)]
        return ranking, AveragedDecision(columns, tuple(even), density, float(trusts[best])), joint, names

    def _settled(self, candidate: Candidate, shrinkage: Shrinkage) -> Joint:
        settled: dict[str, Any] = {
            "covariance": "per_class" if candidate[1] else "shared",
            "shrinkage": shrinkage,
            "transform": candidate[0],
        }
        return replace(self.models.joint, **settled)


@dataclass(frozen=True, eq=False)
class _Trials:
    """The models of every fold of a plan, tried on its held-out rows."""

    averaged: AveragedModels
    folds: Folds
    #: If remembered: the scores (M, n, C) of held-out rows, their labels and weights.
    seen: list[tuple[Floats, npt.NDArray[Any], Floats]] = field(default_factory=list)

    @cached_property
    def samples(self) -> dict[Candidate, FoldSamples]:
        return self.averaged.samples(self.folds, int(self.averaged.sizes[-1]))

    def trained(self, fold: int) -> bool:
        """Return whether a fold has training rows."""
        return next(iter(self.samples.values())).trained(fold)

    def sweeps(self, n_members: int) -> list[Sweep]:
        """Return what every model gets right, and its losses (trusts, members), fold by fold."""
        return self._swept(lambda fold: _Trial(self, fold), n_members)

    def judged(self, shares: Floats, exponents: Floats) -> Sweep:
        """Return what the sum of all scores, each times its share, gets right, by power of the prior."""
        total = _Total(shares, exponents[:, None, None] * self.averaged._log_shares)
        if self.averaged.remembered:
            parts = [total.counts(*seen) for seen in self.seen]
        else:
            parts = self._swept(lambda fold: _Trial(self, fold, total), len(exponents))
        return sum(parts, Sweep.zero(len(exponents)))

    def _swept(self, trial_of: Callable[[int], _Trial], n_models: int) -> list[Sweep]:
        found = self.averaged.models.rows.sweep(trial_of, np.arange(n_models), self.folds)
        out = [s for fold, s in enumerate(found) if s.weight > 0 and self.trained(fold)]
        if not all(samples.are_kept for samples in self.samples.values()):
            self.__dict__.pop("samples", None)  # large, and not needed beside those of other plans
        return out


@dataclass(frozen=True, eq=False)
class _Total:
    """The sum of scores, each times its share, with several biases of classes."""

    shares: Floats  # (M,)
    biases: Floats  # (E, 1, C)

    def counts(self, scores: Floats, labels: npt.NDArray[Any], weights: Floats) -> Sweep:
        """Return what the sum gets right with each of the biases, from scores (M, n, C)."""
        # What has no share may be infinite.
        used = np.flatnonzero(self.shares)
        return _counts(
            np.tensordot(self.shares[used], scores[used], 1) + self.biases, labels, weights, (1.0,)
        )


@dataclass(frozen=True)
class _Judged:
    """The exponent of the prior, and how good the average is with it on held-out rows."""

    exponent: float
    log_loss: float
    accuracy: float


@dataclass(frozen=True, eq=False)
class _Trial:
    """The models of one fold; with a total, their average."""

    trials: _Trials
    fold: int
    total: _Total | None = None
    made: dict[Candidate, tuple[JointSample, list[tuple[Floats, Floats]]]] = field(default_factory=dict)

    def swept(
        self,
        X: Matrix,
        labels: npt.NDArray[Any],
        weights: Floats,
        sizes: Integers,
        rows: Integers,
    ) -> Sweep:
        """Counts of shape (members,), losses (trusts, members): ``sizes`` are the members."""
        total = Sweep.zero(len(sizes))
        averaged = self.trials.averaged
        width = 2 * len(averaged.members) * averaged.models.rows.n_classes
        few = averaged.models.few_rows
        if not self.trials.trained(self.fold):
            return total
        # Few rows are scored at once, so that their sample can be dropped before the next one is made.
        size = max(int(averaged.sizes[-1]), width) if not few else 1
        for block in blocks(len(rows), size):
            some = rows[block]
            scores = self._scores(X[some])
            given = (labels[some], weights[some])
            if self.total is not None:
                total = total + self.total.counts(scores, *given)
                continue
            total = total + _counts(scores, *given, TRUSTS, averaged.doubt)
            if averaged.remembered:
                self.trials.seen.append((scores, *given))
        return total

    def _scores(self, X: Matrix) -> Floats:
        """Scores of all members for some rows, shape (M, n, C)."""
        averaged, out = self.trials.averaged, []
        for candidate in self.trials.samples:
            sample, fits = self._made(candidate)
            values = cells(X, sample.columns)
            if sample.unit is not None:
                values = LogTransform(sample.unit)(values)
            z = (values - sample.origin) * sample.rate
            z = np.where(np.isnan(z), 0.0, z)
            for size in averaged.sizes.tolist():
                out += list(sample.scores(z, size, averaged.shrinkages(sample, size)))
            out += [sample.log_prior + z[:, : w.shape[1]] @ w.T + bias for w, bias in fits]
        return np.stack(out)

    def _made(self, candidate: Candidate) -> tuple[JointSample, list[tuple[Floats, Floats]]]:
        if candidate in self.made:
            return self.made[candidate]
        samples = self.trials.samples[candidate]
        sample = samples.of(self.fold)[1]
        fits = list(self.trials.averaged.conditional_fits(samples, self.fold, sample, candidate))
        if not self.trials.averaged.models.few_rows:
            self.made[candidate] = sample, fits
        return sample, fits


def _row_weights(rows: Rows) -> Iterator[Floats]:
    """Weights of rows, some at a time; none where they are not known."""
    if isinstance(rows, BatchRows):
        for batch in rows:
            yield from _row_weights(batch)
    elif isinstance(rows, ArrayRows):
        weights = np.ones(rows.X.shape[0]) if rows.weights is None else rows.weights
        yield weights if rows.labels.ndim == 1 else weights * rows.labels.sum(axis=1)


def _named(member: Member, what: str) -> str:
    transform, per_class = member.candidate
    per = ", a covariance per class" if per_class else ""
    return f"{transform or 'raw'}, {member.size} features{per}, {what}"


def _counts(
    scores: Floats, labels: npt.NDArray[Any], weights: Floats, trusts: Sequence[float], doubt: float = 0.0
) -> Sweep:
    if len(trusts) > 1 and labels.ndim == 1:
        correct = (scores.argmax(axis=-1) == labels) @ weights
        loss = trusted_losses(scores, labels, weights, trusts, doubt)
        return Sweep(correct, loss, float(weights.sum()), float(weights @ weights))
    losses = [counted(trust * scores, labels, weights, doubt) for trust in trusts]
    w = weights if labels.ndim == 1 else weights * labels.sum(axis=1)
    loss = np.stack([loss for _, loss in losses]) if len(trusts) > 1 else losses[0][1]
    return Sweep(losses[0][0], loss, float(w.sum()), float(w @ w))


def _conditional(
    z: Floats, codes: Integers, weights: Floats, n_classes: int, ridges: Sequence[float], tol: float
) -> Iterator[tuple[Floats, Floats]]:
    """For each ridge the conditional model of z (n, K): weights (C, K), and biases beyond the log prior (C,).

    Features are ``z / sqrt(K)``. Where there are more of them than rows, the weights lie in the span of the
    rows, and are looked for there. Equal rows are one row, so that the way to the optimum does not depend on
    whether a row has weight 2 or is there twice.
    """
    z, codes, weights = _merged(z, codes, weights)
    n, size = z.shape
    mass = np.bincount(codes, weights, n_classes)
    present = np.flatnonzero(mass > 0)
    features, back = z / np.sqrt(size), np.eye(0)
    if n <= size:
        variances, directions = np.linalg.eigh(features @ features.T)
        solid = variances > 1e-10 * max(float(variances[-1]), np.finfo(np.float64).tiny)
        root, directions = np.sqrt(variances[solid]), directions[:, solid]
        back, features = (directions / root).T @ features, directions * root
    start = None
    rows, places = ScaledRows.of(features, np.ones(features.shape[1])), np.searchsorted(present, codes)
    offset = np.tile(np.log(mass[present] / mass.sum()), (n, 1))
    for ridge in ridges:
        out, bias = np.zeros((n_classes, size)), np.zeros(n_classes)
        if len(present) > 1 and features.any():
            start = correct(rows, places, weights, offset, ridge, start, MOST_STEPS, tol)
            found = start[:-1].T
            out[present] = (found @ back if n <= size else found) / np.sqrt(size)
            bias[present] = start[-1] - start[-1].mean()
        yield out, bias


def _merged(z: Floats, codes: Integers, weights: Floats) -> tuple[Floats, Integers, Floats]:
    """Return equal rows of a class as one row, in the order of the first of each."""
    _, first, which = np.unique(content_hashes(z, codes), return_index=True, return_inverse=True)
    if len(first) == len(z):
        return z, codes, weights
    order = np.argsort(first)
    kept = first[order]
    return z[kept], codes[kept], np.bincount(which, weights)[order].astype(np.float64)
