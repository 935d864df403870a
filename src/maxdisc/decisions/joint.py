"""Joint densities: means *and* covariances of the kept features constrained together, shrunk to be stable.

The maximum-entropy density under means and all products is the multivariate Gaussian. Covariances are kept as
``(1 - s) F'F + s I`` in units of the deviation within classes, with as many rows in the factor F as there are
rows of data (or features, if those are fewer): nothing of size K x K is made where K exceeds N.
"""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.linear import BREADTH, LinearDecision
from maxdisc.decisions.sweep import Sweep, counted
from maxdisc.densities.class_densities import LEAST_SPREAD
from maxdisc.families import Gaussian
from maxdisc.moments.class_moments import ClassMoments, ratio
from maxdisc.moments.products import ClassProducts
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import (
    Booleans,
    Floats,
    Integers,
    Matrix,
    blocks,
    canonical,
    is_sparse,
    with_data,
)

#: So many pseudo-rows give all classes the variance within classes: see :func:`weighing_one`.
POOLED = Smoothing(1e12)
#: No covariance is shrunk less than this: its inverse then keeps 12 digits, however many features there are.
LEAST_SHRINKAGE = 1e-4
#: Logarithms begin at this share of a feature's deviation. With the deviation itself, a set of expression
#: values with many classes lost up to six points.
UNIT = 1 / 32
# Linear terms of this size cancel to about 1e-8; beyond, distances to the class means are taken.
FAR = 1e8
# A covariance this much wider in one direction than in most has an inverse of five digits.
WIDEST = 1e11
# Directions with less than this share of the largest variance are rounding.
ROUNDING = 1e-12

#: A share from 0 to 1, or a rule that finds it.
Shrinkage: TypeAlias = float | Literal["ledoit_wolf", "oas"]


@dataclass(frozen=True)
class Joint:
    """What a joint density is made of; what says "auto" is chosen on the folds, with the number of features.

    Parameters
    ----------
    covariance : {"shared", "per_class", "auto"}
        One covariance for all classes, which makes a decision linear in x, or one for each, which makes it
        quadratic.
    shrinkage : "auto", "ledoit_wolf", "oas" or float
        How far covariances are drawn towards the variances within classes, without correlation: a share from
        0 (never quite: at least 1e-4) to 1 (shared: a diagonal linear discriminant), or the rule of Ledoit
        and Wolf or the oracle approximating rule of Chen and others. The two rules take weights for numbers
        of rows, as smoothing does: a row of weight 2 is two rows, and weights that sum to 1 are one row,
        drawn wholly (scale them to sum to the number of rows). Where each class has a covariance of its own,
        a smaller class is drawn further, as by pseudo-rows.
    search : {"top", "greedy"}
        Keep the best features by their own divergence, or choose them one after another by what they add to
        the J of the joint densities, cross-fitted between two halves of the rows. The halves are dealt by a
        hash of each row's cells and their columns: the order of rows does not matter, that of columns does.
    transform : {"auto", "log"} or None
        Take x as it is, or ``sign(x) log(1 + |x| / u)``, with u a small part (1/32) of the feature's
        deviation over all rows: so 0 stays 0, and all that is not close to it, of either sign, becomes a
        logarithm.

    Examples
    --------
    >>> from maxdisc import Joint
    >>> Joint(shrinkage=0.2, transform=None)
    Joint(covariance='shared', shrinkage=0.2, search='top', transform=None)
    """

    covariance: Literal["shared", "per_class", "auto"] = "shared"
    shrinkage: float | Literal["auto", "ledoit_wolf", "oas"] = "auto"
    search: Literal["top", "greedy"] = "top"
    transform: Literal["auto", "log"] | None = "auto"

    def __post_init__(self) -> None:
        allowed: dict[str, tuple[Any, ...]] = {
            "covariance": ("shared", "per_class", "auto"),
            "search": ("top", "greedy"),
            "transform": ("auto", "log", None),
        }
        for name, values in allowed.items():
            value = getattr(self, name)
            if not (value is None or isinstance(value, str)) or value not in values:
                raise ValueError(f"the {name} of a Joint is {' or '.join(map(repr, values))}, got {value!r}.")
        share = self.shrinkage
        number = isinstance(share, numbers.Real) and not isinstance(share, bool)
        if number:
            object.__setattr__(self, "shrinkage", float(share))
        if not (number and 0 <= float(share) <= 1) and share not in ("auto", "ledoit_wolf", "oas"):
            raise ValueError(
                "the shrinkage of a Joint is a share from 0 to 1, 'ledoit_wolf', 'oas' or 'auto', "
                f"got {share!r}."
            )

    @property
    def settled(self) -> bool:
        """Whether nothing is left to choose."""
        return "auto" not in (self.covariance, self.shrinkage, self.transform)


@dataclass(frozen=True, eq=False)
class LogTransform:
    """``sign(x) log(1 + abs(x) / unit)``: odd, increasing, linear near 0 and logarithmic far away."""

    unit: Floats  # (D,)

    @classmethod
    def of(cls, moments: ClassMoments) -> LogTransform:
        """The unit of each feature is a small part of its deviation over all rows; 1 if it does not vary."""
        center, sums = moments.centred()
        cells = np.broadcast_to(moments.cells, center.shape)
        total = np.maximum(cells.sum(axis=0), np.finfo(np.float64).tiny)
        level = (cells * center).sum(axis=0) / total
        variance = (sums[1] + cells * (center - level) ** 2).sum(axis=0) / total
        return cls(np.where(variance > 0, UNIT * np.sqrt(variance), 1.0))

    def __call__(self, X: Matrix) -> Matrix:
        """Transformed values of the same shape, sparse from sparse; NaN stays NaN."""
        if is_sparse(X):
            X = canonical(X).astype(np.float64, copy=False)
            return with_data(X, np.sign(X.data) * np.log1p(np.abs(X.data) / self.unit[X.indices]))
        values = np.asarray(X, dtype=np.float64)
        return np.copysign(np.log1p(np.abs(values) / self.unit), values)

    @property
    def largest(self) -> Floats:
        """The transform of the largest values that a fit takes, shape (D,)."""
        return np.logaddexp(0.0, np.log(Gaussian.largest) - np.log(self.unit))

    def inverse(self, values: Floats) -> Floats:
        """Return the x of transformed values; those beyond what a fit takes become the largest of these."""
        return np.copysign(self.unit * np.expm1(np.minimum(np.abs(values), self.largest)), values)

    def log_slope(self, X: Floats) -> Floats:
        """Log of the derivative, which turns densities of transformed values into densities of x."""
        return -np.log(self.unit + np.abs(X))

    def select(self, columns: Integers | Booleans) -> LogTransform:
        """Return the transform of some of the features."""
        return LogTransform(self.unit[columns])


@dataclass(frozen=True, eq=False)
class JointDecision:
    """Bayes decision among multivariate Gaussians: linear for a shared covariance, else quadratic.

    With ``z = (t(x) - origin) * rate``, a class has mean ``center`` and precision ``tail * (I - factor'
    factor)``.
    """

    columns: Integers  # (K,)
    origin: Floats  # (K,)
    rate: Floats  # (K,)
    center: Floats  # (C, K)
    tail: Floats  # (G,)
    factor: Floats  # (G, R, K)
    log_prior: Floats  # (C,)
    unit: Floats | None = None  # (K,)

    @property
    def n_classes(self) -> int:
        """C, the number of classes."""
        return len(self.center)

    @property
    def shared(self) -> bool:
        """Whether all classes have one covariance."""
        return len(self.tail) == 1

    @cached_property
    def lengths(self) -> Floats:
        """Squared lengths of the factor's rows, shape (G, R)."""
        return np.einsum("grk,grk->gr", self.factor, self.factor)

    @cached_property
    def weights(self) -> Floats:
        """For a shared covariance: what z is multiplied with, shape (C, K)."""
        return self._times(self.center, 0)

    @cached_property
    def linear(self) -> bool:
        """Whether rows are scored by :attr:`weights`, no class lying so far away that its terms cancel."""
        return self.shared and _near(0.5 * (self.weights * self.center).sum(axis=1))

    @cached_property
    def constant(self) -> Floats:
        """Half the log determinants of the precisions, over the features that say something, shape (G,)."""
        telling = np.count_nonzero(self.rate)
        return 0.5 * (telling * np.log(self.tail) + np.log1p(-self.lengths).sum(axis=1))

    def _times(self, z: Floats, group: int) -> Floats:
        """Return rows (n, K) times a precision."""
        factor = self.factor[group]
        return self.tail[group] * (z - (z @ factor.T) @ factor)

    def apart(self, sparse: bool) -> Booleans:  # noqa: ARG002  # dense or not, all are looked at together
        """Return the features that cannot be scored cell by cell: all, since they are weighed together."""
        return np.ones(len(self.columns), dtype=np.bool_)

    def between(self, pair: Integers) -> JointDecision:
        """Return the decision among some of the classes."""
        groups = np.zeros(1, dtype=np.intp) if self.shared else pair
        return replace(
            self,
            center=self.center[pair],
            tail=self.tail[groups],
            factor=self.factor[groups],
            log_prior=self.log_prior[pair],
        )

    def first(self, size: int) -> JointDecision:
        """Return the decision that keeps only the ``size`` best of these features."""
        return self.marginal(np.arange(min(size, len(self.columns))))

    def marginal(self, kept: Integers) -> JointDecision:
        """Return the decision by some of the features: the others are integrated out."""
        loadings = (self.factor / np.sqrt(1 - self.lengths)[:, :, None])[:, :, kept]
        spread, directions = np.linalg.eigh(loadings @ np.swapaxes(loadings, 1, 2))
        length = np.maximum(spread, 0.0)
        factor = np.swapaxes(directions, 1, 2) @ loadings / np.sqrt(1 + length)[:, :, None]
        return replace(
            self,
            columns=self.columns[kept],
            origin=self.origin[kept],
            rate=self.rate[kept],
            center=self.center[:, kept],
            factor=factor[:, -len(kept) :] if len(kept) else factor[:, :0],
            unit=None if self.unit is None else self.unit[kept],
        )

    def scores(self, X: Matrix) -> Floats:
        """Return log prior plus evidence (N, C), up to a constant; missing cells are integrated out."""
        return np.concatenate(
            [
                self._by_pattern(z, lambda part, some: part.log_prior + part._evidence(some), self.n_classes)
                for z, _ in self._blocks(X)
            ]
        )

    def log_base(self, X: Matrix) -> Floats:
        """Return what all classes share of the log density of each row, shape (N,)."""
        out = []
        for z, values in self._blocks(X):
            base = self._by_pattern(z, lambda part, some: part._common(some)[:, None], 1)[:, 0]
            slope = np.zeros(z.shape) + np.log(np.where(self.rate > 0, self.rate, 1.0))
            if self.unit is not None:
                slope += LogTransform(self.unit).log_slope(values)
            slope[:, self.rate == 0] = 0.0
            out.append(base + np.where(np.isnan(z), 0.0, slope).sum(axis=1))
        return np.concatenate(out)

    def log_densities(self, X: Matrix) -> Floats:
        """Return the log density of each row in each class, shape (N, C), up to what no class changes.

        Comparable with those of :meth:`unknown`: the slopes of the transform are left out.
        """

        def absolute(part: JointDecision, z: Floats) -> Floats:
            return part._evidence(z) + part._common(z)[:, None]

        return np.concatenate([self._by_pattern(z, absolute, self.n_classes) for z, _ in self._blocks(X)])

    def unknown(self) -> JointDecision:
        """Return the densities of two unknown classes: that of all rows together, and a far broader one."""
        prior = np.exp(self.log_prior)
        share = prior.sum(keepdims=True) if self.shared else prior
        variance = (share / self.tail).sum()
        middle = prior @ self.center
        loadings = self.factor / np.sqrt(1 - self.lengths)[:, :, None]
        within = loadings * np.sqrt(share / self.tail)[:, None, None]
        between = np.sqrt(prior)[:, None] * (self.center - middle)
        spectrum = _Spectrum.of(np.concatenate([*within, between]) / np.sqrt(variance))
        variances = np.minimum(spectrum.variances, WIDEST)
        length = variances / (1 + variances)
        factor = np.sqrt(length)[:, None] * spectrum.directions
        return replace(
            self,
            center=np.stack([middle, middle]),
            tail=np.array([1.0, BREADTH]) / variance,
            factor=np.stack([factor, factor]),
            log_prior=np.zeros(2),
        )

    def contributions(self, X: Matrix) -> Floats:
        """Return what each kept feature adds to each class's score, shape (N, C, K).

        Shared covariance: its weight times how far it lies beyond half-way to the class mean. Otherwise: its
        share of the quadratic form, and an even share of the log determinant. The share of the form also
        where classes with a shared covariance lie so far apart (1e4 deviations) that weights would cancel.
        0 for a missing cell.
        """
        shape = (self.n_classes, len(self.columns))
        out = np.empty((X.shape[0], *shape))
        start = 0
        for z, _ in self._blocks(X):
            flat = self._by_pattern(z, self._scattered, shape[0] * shape[1])
            out[start : start + len(z)] = flat.reshape(-1, *shape)
            start += len(z)
        return out

    def sample(self, codes: Integers, rng: np.random.Generator) -> Floats:
        """Draw the kept features of rows of the classes given, shape (n, K)."""
        z = rng.normal(size=(len(codes), len(self.columns)))
        loadings = self.factor / np.sqrt(1 - self.lengths)[:, :, None]
        for g in range(len(self.tail)):
            rows = np.arange(len(codes)) if self.shared else np.flatnonzero(codes == g)
            along = rng.normal(size=(len(rows), self.factor.shape[1]))
            z[rows] = (z[rows] + along @ loadings[g]) / np.sqrt(self.tail[g])
        z += self.center[codes]
        values = self.origin + np.where(self.rate > 0, z / np.where(self.rate > 0, self.rate, 1.0), 0.0)
        return values if self.unit is None else LogTransform(self.unit).inverse(values)

    def _blocks(self, X: Matrix) -> Iterator[tuple[Floats, Floats]]:
        """Standardised and plain values of the kept features, some rows at a time."""
        for rows in blocks(X.shape[0], max(len(self.columns), 1)):
            values = X[rows][:, self.columns]
            values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
            yield self.standardised(values), values
        if X.shape[0] == 0:
            yield np.empty((0, len(self.columns))), np.empty((0, len(self.columns)))

    def standardised(self, values: Floats) -> Floats:
        """Values of the kept features (n, K) in units of their deviation within classes."""
        if self.unit is not None:
            values = LogTransform(self.unit)(values)
        return (values - self.origin) * self.rate

    def _by_pattern(self, z: Floats, answer: Callable[[JointDecision, Floats], Floats], width: int) -> Floats:
        """Ask the marginal decision of each pattern of missing cells about the rows that have it."""
        missing = np.isnan(z)
        some = missing.any(axis=1)
        out = np.empty((len(z), width))
        if not some.all():
            out[~some] = answer(self, z[~some])
        if some.any():
            patterns, which = np.unique(missing[some], axis=0, return_inverse=True)
            rows = np.flatnonzero(some)
            for p, pattern in enumerate(patterns):
                these, kept = rows[which.ravel() == p], np.flatnonzero(~pattern)
                out[these] = answer(replace(self.marginal(kept), columns=kept), z[np.ix_(these, kept)])
        return out

    def _evidence(self, z: Floats) -> Floats:
        """Log densities up to what all classes share, shape (n, C)."""
        if self.linear:
            return z @ self.weights.T - 0.5 * (self.weights * self.center).sum(axis=1)
        out = np.empty((len(z), self.n_classes))
        for c in range(self.n_classes):
            g = 0 if self.shared else c
            gap = z - self.center[c]
            along = gap @ self.factor[g].T
            out[:, c] = -0.5 * self.tail[g] * ((gap * gap).sum(axis=1) - (along * along).sum(axis=1))
        return out if self.shared else out + self.constant

    def _common(self, z: Floats) -> Floats:
        """Return what all classes share of the log density of z, shape (n,)."""
        base = np.full(len(z), -0.5 * np.log(2 * np.pi) * np.count_nonzero(self.rate))
        if self.shared:
            base += self.constant[0]
        return base - 0.5 * (z * self._times(z, 0)).sum(axis=1) if self.linear else base

    def _scattered(self, part: JointDecision, z: Floats) -> Floats:
        """Contributions of the features of a marginal decision, among all of them, flat."""
        out = np.zeros((len(z), self.n_classes, len(self.columns)))
        kept = np.arange(len(self.columns)) if part is self else part.columns
        out[:, :, kept] = part._contributions(z)
        return out.reshape(len(z), -1)

    def _contributions(self, z: Floats) -> Floats:
        if self.linear:
            return self.weights * (z[:, None] - 0.5 * self.center)
        gaps = [z - center for center in self.center]
        shares = [-0.5 * gap * self._times(gap, 0 if self.shared else c) for c, gap in enumerate(gaps)]
        out = np.stack(shares, axis=1)
        telling = self.rate > 0
        even = self.constant[:, None] * (telling / max(int(np.count_nonzero(telling)), 1))
        return out if self.shared else out + even


@dataclass(frozen=True, eq=False)
class JointSample:
    """Sufficient statistics of joint densities: class means, and residuals as factors.

    ``factor' factor`` is the covariance of z within all classes (G = 1) or within each (G = C).
    """

    columns: Integers
    origin: Floats
    rate: Floats
    center: Floats
    log_prior: Floats
    weight: Floats  # (G,)
    factors: tuple[Floats, ...]
    row_shares: tuple[Floats, ...] | None
    unit: Floats | None = None
    _spectra: dict[int, list[_Spectrum]] = field(default_factory=dict, repr=False)

    @classmethod
    def of_rows(
        cls,
        X: Matrix,
        codes: Integers,
        weights: Floats,
        moments: ClassMoments,
        columns: Integers,
        per_class: bool = False,
        prior: Floats | None = None,
        unit: Floats | None = None,
    ) -> JointSample:
        """Build from rows (N, D) in memory; a missing cell counts as the mean of its class.

        ``moments`` are those of the same rows, and ``X`` is transformed already where there is a ``unit``.
        """
        blank = cls._blank(moments, columns, prior, unit)
        values = X[:, columns]
        values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
        residuals = (values - blank.origin) * blank.rate - blank.center[codes]
        residuals = np.where(np.isnan(residuals), 0.0, residuals) * np.sqrt(weights)[:, None]
        groups = codes if per_class else np.zeros(len(codes), dtype=np.intp)
        weight = moments.weight if per_class else moments.weight.sum(keepdims=True)
        root = np.sqrt(np.where(weight > 0, weight, 1.0))
        factors = [residuals[groups == g] / root[g] for g in range(len(weight))]
        shares = tuple(ratio(weights[groups == g], weight[g]) for g in range(len(weight)))
        observed = _as_observed(factors, moments, blank)
        return replace(blank, weight=weight, factors=observed, row_shares=shares)

    @classmethod
    def of_products(
        cls,
        products: ClassProducts,
        moments: ClassMoments,
        columns: Integers,
        prior: Floats | None = None,
        unit: Floats | None = None,
    ) -> JointSample:
        """Build from the products of just these columns (in this order): for more rows than features."""
        blank = cls._blank(moments, columns, prior, unit)
        weight = products.weight if products.per_class else products.weight.sum(keepdims=True)
        scatter = products.within() * blank.rate[:, None] * blank.rate
        variances, directions = np.linalg.eigh(scatter / np.where(weight > 0, weight, 1.0)[:, None, None])
        factors = list(np.sqrt(np.maximum(variances, 0.0))[:, :, None] * np.swapaxes(directions, 1, 2))
        return replace(blank, weight=weight, factors=_as_observed(factors, moments, blank))

    @classmethod
    def _blank(
        cls, moments: ClassMoments, columns: Integers, prior: Floats | None, unit: Floats | None
    ) -> JointSample:
        marginal = LinearDecision.of(Gaussian(), weighing_one(moments), POOLED, columns, prior)
        precision = -2 * marginal.weights[1]
        telling = precision[0] > 0
        rate = np.sqrt(np.where(telling, precision[0], 0.0))
        seen = moments.weight > 0
        means = moments.means()[:, columns]
        cells = np.broadcast_to(moments.cells, moments.sums.shape[1:])[:, columns]
        share = cells / np.where(cells.sum(axis=0) > 0, cells.sum(axis=0), 1.0)
        heaviest = means[int(np.argmax(moments.weight))]
        origin = heaviest + (share * (means - heaviest)).sum(axis=0)
        center = np.where((cells > 0) & seen[:, None], (means - origin) * rate, 0.0)
        return cls(
            np.asarray(columns),
            origin,
            rate,
            center,
            marginal.log_prior,
            np.zeros(0),
            (),
            None,
            None if unit is None else unit[columns],
        )

    def _spectrum(self, size: int) -> list[_Spectrum]:
        """Variances and directions of each factor's first columns: one decomposition for all shrinkages."""
        if size not in self._spectra:
            self._spectra[size] = [_Spectrum.of(factor[:, :size]) for factor in self.factors]
        return self._spectra[size]

    def decision(self, size: int, shrinkage: Shrinkage) -> JointDecision:
        """Return the decision by the first features, its covariances shrunk."""
        spectra = self._spectrum(size)
        shares, lengths = self._shrunk(size, shrinkage)
        rank = max([1, *(len(length) for length in lengths)])
        factor = np.zeros((len(spectra), rank, size))
        for out, spectrum, length in zip(factor, spectra, lengths, strict=True):
            out[: len(length)] = np.sqrt(length)[:, None] * spectrum.directions
        return JointDecision(
            self.columns[:size],
            self.origin[:size],
            self.rate[:size],
            np.ascontiguousarray(self.center[:, :size]),
            1 / shares,
            factor,
            self.log_prior,
            None if self.unit is None else self.unit[:size],
        )

    def scores(self, z: Floats, size: int, shrinkages: Sequence[Shrinkage]) -> Iterator[Floats]:
        """For each shrinkage, the scores (n, C) of rows of z: what its decision gives, without making it."""
        z, center = z[:, :size], self.center[:, :size]
        along = [(z @ s.directions.T, center @ s.directions.T) for s in self._spectrum(size)]
        squares = (center**2).sum(axis=1)
        if len(along) == 1 and _near(squares):
            ((rows, classes),) = along
            shrunk = [self._shrunk(size, shrinkage) for shrinkage in shrinkages]
            scale = np.array([share for share, _ in shrunk])
            stacked = np.stack([length for _, (length,) in shrunk])
            half = 0.5 * (squares - stacked @ (classes**2).T)
            inside = (rows * stacked[:, None]) @ classes.T
            yield from self.log_prior + (z @ center.T - inside - half[:, None]) / scale[:, :, None]
            return
        telling = np.count_nonzero(self.rate[:size])
        gaps = np.stack([((z - m) ** 2).sum(axis=1) for m in center], axis=1)
        groups = [0] * len(center) if len(along) == 1 else range(len(center))
        apart = [(along[g][0] - along[g][1][c]) ** 2 for c, g in enumerate(groups)]
        for shrinkage in shrinkages:
            shares, lengths = self._shrunk(size, shrinkage)
            inside = np.stack([a @ lengths[g] for a, g in zip(apart, groups, strict=True)], axis=1)
            volume = np.array([np.log1p(-length).sum() for length in lengths]) - telling * np.log(shares)
            yield self.log_prior + 0.5 * (volume - (gaps - inside) / shares)

    def weights(self, size: int, shrinkage: Shrinkage) -> Floats:
        """Return what z is multiplied with by the decision of a shared covariance, shape (C, size)."""
        (spectrum,), center = self._spectrum(size), self.center[:, :size]
        shares, (length,) = self._shrunk(size, shrinkage)
        along = center @ spectrum.directions.T
        return (center - (along * length) @ spectrum.directions) / shares[0]

    def _shrunk(self, size: int, shrinkage: Shrinkage) -> tuple[Floats, list[Floats]]:
        """Return the share of each group, and the squared lengths of the rows of its decision's factor."""
        spectra = self._spectrum(size)
        shares = np.array([self._share(g, s, size, shrinkage) for g, s in enumerate(spectra)])
        whole = [(1 - share) * s.variances for s, share in zip(spectra, shares, strict=True)]
        if any((w > WIDEST * share).any() for w, share in zip(whole, shares, strict=True)):
            raise ValueError(
                "a class varies too much beside the variance within all classes for a covariance of its own: "
                "give weights that differ less, more shrinkage, or covariance='shared'."
            )
        return shares, [w / (w + share) for w, share in zip(whole, shares, strict=True)]

    def _share(self, group: int, spectrum: _Spectrum, size: int, shrinkage: Shrinkage) -> float:
        weight = float(self.weight[group])
        if weight == 0:
            return 1.0
        if shrinkage == "oas":
            share = _oas(spectrum.variances, size, weight)
        elif shrinkage == "ledoit_wolf":
            if self.row_shares is None:
                raise ValueError(
                    "shrinkage='ledoit_wolf' needs the rows in memory, and not more than "
                    "a few thousand: use 'oas', 'auto' or a number."
                )
            norms = (self.factors[group][:, :size] ** 2).sum(axis=1)
            share = _ledoit_wolf(spectrum.variances, norms, self.row_shares[group], size, weight)
        elif len(self.factors) == 1 or shrinkage == 1:
            share = float(shrinkage)
        else:
            # As many pseudo-rows for each class as make this share of a class of average weight.
            pseudo = shrinkage / (1 - shrinkage) * float(self.weight[self.weight > 0].mean())
            share = pseudo / (weight + pseudo)
        return min(max(share, LEAST_SHRINKAGE), 1.0)


def weighing_one(moments: ClassMoments) -> ClassMoments:
    """Return the same moments, scaled to weigh about 1, so that ``POOLED`` pseudo-rows outweigh them.

    By a power of two, which changes no digit.
    """
    exponent = np.frexp(moments.weight.sum())[1]
    return moments.scaled(np.full(moments.n_classes, np.ldexp(1.0, -max(int(exponent), -1000))))


def _near(terms: Floats) -> bool:
    """Return whether terms are so small that the difference of two of them keeps its digits."""
    return bool((terms <= FAR).all())


def _as_observed(factors: list[Floats], moments: ClassMoments, blank: JointSample) -> tuple[Floats, ...]:
    """Factors with the variances of the observed cells, which missing ones, at their means, made smaller."""
    if moments.observed is None:
        return tuple(factors)
    sums, cells = moments.centred()[1][1, :, blank.columns].T, moments.observed[:, blank.columns]
    if len(factors) == 1:
        sums, cells = sums.sum(axis=0, keepdims=True), cells.sum(axis=0, keepdims=True)
    due = ratio(sums, cells) * blank.rate**2
    return tuple(
        factor * np.sqrt(ratio(variance, (factor**2).sum(axis=0)))
        for factor, variance in zip(factors, due, strict=True)
    )


@dataclass(frozen=True, eq=False)
class _Spectrum:
    """Variances (R,) and the directions that have them (R, K), of ``factor' factor``."""

    variances: Floats
    directions: Floats

    @classmethod
    def of(cls, factor: Floats) -> _Spectrum:
        n, size = factor.shape
        if n == 0 or size == 0:
            return cls(np.zeros(0), np.zeros((0, size)))
        few = n <= size
        variances, directions = np.linalg.eigh(factor @ factor.T if few else factor.T @ factor)
        kept = variances > ROUNDING * max(float(variances[-1]), np.finfo(np.float64).tiny)
        variances, directions = variances[kept], directions[:, kept].T
        if few:
            directions = directions @ factor / np.sqrt(variances)[:, None]
        return cls(variances, directions)


def _oas(variances: Floats, size: int, n: float) -> float:
    """Return the oracle approximating shrinkage of Chen, Wiesel, Eldar and Hero (2010)."""
    level, square = variances.sum() / size, (variances**2).sum() / size**2
    below = (n + 1) * (square - level**2 / size)
    return 1.0 if below <= 0 else float(min((square + level**2) / below, 1.0))


def _ledoit_wolf(variances: Floats, norms: Floats, row_shares: Floats, size: int, n: float) -> float:
    """Return the shrinkage of Ledoit and Wolf (2004).

    A row of share q has the squared length q times that of its residual, whose fourth power is averaged.
    """
    level, square = variances.sum() / size, (variances**2).sum()
    distance = (square - size * level**2) / size
    fourth = ratio(norms**2, row_shares).sum()
    noise = min(max(fourth - square, 0.0) / (size * n), distance)
    return 1.0 if distance <= 0 else float(noise / distance)


@dataclass(frozen=True, eq=False)
class JointTrial:
    """Joint models with every shrinkage and trust, evaluated on held-out rows."""

    sample: JointSample
    shrinkages: Sequence[Shrinkage]
    trusts: Sequence[float] = (1.0,)

    def swept(
        self, X: Matrix, labels: npt.NDArray[Any], weights: Floats, sizes: Integers, rows: Integers
    ) -> Sweep:
        """Return what each shrinkage gets right with each number of first features.

        Counts have the shape (shrinkages, sizes), losses (trusts, shrinkages, sizes). A missing cell counts
        as the mean over all classes here.
        """
        shape = (len(self.shrinkages), len(sizes))
        result = Sweep(np.zeros(shape), np.zeros((len(self.trusts), *shape)), 0.0, 0.0)
        columns = self.sample.columns[: int(sizes[-1])]
        for block in blocks(len(rows), max(len(columns), 2 * result.correct.size * len(self.sample.center))):
            some = rows[block]
            values = X[some][:, columns]
            values = np.asarray(values.toarray() if is_sparse(values) else values, dtype=np.float64)
            z = (values - self.sample.origin[: len(columns)]) * self.sample.rate[: len(columns)]
            z = np.where(np.isnan(z), 0.0, z)
            of_sizes = [list(self.sample.scores(z, int(size), self.shrinkages)) for size in sizes]
            scores = np.stack([np.stack(of_size) for of_size in of_sizes], axis=1)
            losses = [counted(trust * scores, labels[some], weights[some]) for trust in self.trusts]
            correct, loss = losses[-1][0], np.stack([loss for _, loss in losses])
            w = weights[some] if labels.ndim == 1 else weights[some] * labels[some].sum(axis=1)
            result = result + Sweep(correct, loss, float(w.sum()), float(w @ w))
        return result


def forward_search(
    covariance: Floats, left: Floats, right: Floats, prior: Floats, n_steps: int
) -> tuple[Integers, Floats]:
    """Select features one by one by their gain in J, the divergence of joint densities; return order and J.

    For a shared covariance S and centred class means m, J is ``trace(S^-1 B)`` with B the sum over classes
    of ``prior m m'``. It is cross-fitted: S and one m give the directions, the other m comes from other
    rows.
    """
    n_pairs, n_features = covariance.shape[:2]
    n_steps = min(n_steps, n_features)
    variance = np.einsum("hpp->hp", covariance).copy()
    least = ROUNDING * variance
    root = np.sqrt(prior)[:, None]
    left, right = (root * (means - np.tensordot(means, prior, (1, 0))[:, None]) for means in (left, right))
    rows = np.empty((n_pairs, n_steps, n_features))  # of the Cholesky factor, of all candidates
    free = np.ones(n_features, dtype=np.bool_)
    order: list[int] = []
    reached: list[float] = []
    for step in range(n_steps):
        solid = free & (variance > least).all(axis=0)
        gains = (left * right).sum(axis=1) / np.where(solid, variance, 1.0)
        gain = np.where(solid, gains.mean(axis=0), -np.inf)
        best = int(np.argmax(gain))
        if not gain[best] > ROUNDING:
            break
        scale = np.sqrt(variance[:, best])[:, None]
        before = (rows[:, None, :step, best] @ rows[:, :step])[:, 0]
        row = rows[:, step] = (covariance[:, best] - before) / scale
        left -= (left[:, :, best] / scale)[:, :, None] * row[:, None]
        right -= (right[:, :, best] / scale)[:, :, None] * row[:, None]
        variance -= row**2
        free[best] = False
        order.append(best)
        reached.append((reached[-1] if reached else 0.0) + float(gain[best]))
    return np.array(order, dtype=np.intp), np.array(reached)


def cross_fitted_order(
    first: ClassProducts, second: ClassProducts, shrinkage: float, n_steps: int
) -> Integers:
    """Return positions from :func:`forward_search`, with directions from one half and J from the other."""
    halves = (first, second)
    if not all(half.weight.sum() > 0 for half in halves):
        return np.zeros(0, dtype=np.intp)
    total = first + second
    prior = total.weight / total.weight.sum()
    within = np.einsum("pp->p", total.within()[0]) / total.weight.sum()
    mass = np.where(np.isnan(total.origin), 0.0, total.weight[:, None])
    mass = ratio(mass, mass.sum(axis=0))
    middle = (mass * total.means()).sum(axis=0)
    spread = within + (mass * (total.means() - middle) ** 2).sum(axis=0)
    # A feature that is constant within classes has a variance all the same, whatever rounding leaves of it.
    within = np.maximum(within, LEAST_SPREAD * spread)
    rate = np.where(within > 0, 1 / np.sqrt(np.where(within > 0, within, 1.0)), 0.0)
    share = max(shrinkage, LEAST_SHRINKAGE)
    covariances, means = [], []
    for half in halves:
        correlation = half.within()[0] * rate[:, None] * rate / half.weight.sum()
        covariances.append((1 - share) * correlation + share * np.eye(len(rate)))
        # A class that this half lacks lies at the mean, where it adds nothing.
        seen = ~np.isnan(half.origin)
        m = np.where(seen, half.means() - middle, 0.0) * rate
        means.append(np.where(seen, m - (half.weight @ m) / half.weight.sum(), 0.0))
    return forward_search(np.stack(covariances), np.stack(means), np.stack(means[::-1]), prior, n_steps)[0]
