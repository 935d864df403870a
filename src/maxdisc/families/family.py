"""Interface of families of densities."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from maxdisc.families.support import Support
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Booleans, Floats, Matrix, blocks


class Family(ABC):
    """Densities ``log p(x) = natural . statistics(x) - log_partition(natural) + log_base(x)``.

    Families hold no data. Every method works on all classes and features at once: parameters are arrays of
    shape (L, ...), with one leading entry for each statistic, and results have the shape of the other axes.
    The paper writes the feature functions as phi, their expectations as mu, and the parameters as lambda,
    which is ``-natural``.

    Subclasses declare the class attributes and the abstract methods; :func:`maxdisc.testing.check_family`
    then checks every property that a family must have.

    Examples
    --------
    >>> from maxdisc.families import Family, Poisson
    >>> isinstance(Poisson(), Family), Poisson().n_statistics
    (True, 1)
    """

    name: ClassVar[str]
    #: The support of x.
    support: ClassVar[Support]
    #: L, the number of statistics.
    n_statistics: ClassVar[int]
    #: Whether every statistic, and ``log_base``, is 0 at 0, so that sparse rows stay sparse.
    preserves_zero: ClassVar[bool] = True
    #: Whether the statistics are the powers 1..L of x, so that they may be taken about any origin.
    translates: ClassVar[bool] = False
    #: Whether data must be integers. (Counts need not: scaled counts are the normal case for text.)
    integral: ClassVar[bool] = False
    #: Whether :meth:`natural` iterates, so that it may fail to converge; see :meth:`solved`.
    iterative: ClassVar[bool] = False
    #: The largest magnitude whose statistics can be summed without overflow.
    largest: ClassVar[float] = 1e290
    #: Points inside the support where log densities are not smooth.
    breaks: tuple[float, ...] = ()
    #: Means of some density of the family, for uninformative features; shape (L,).
    neutral: ClassVar[tuple[float, ...]]
    #: Candidates of ``smoothing="auto"``, in increasing order; ties go to the first.
    smoothings: ClassVar[tuple[Smoothing, ...]] = tuple(Smoothing(a) for a in (0.1, 1.0, 10.0))
    #: Default of ``smoothing="auto"`` without folds, as in ``partial_fit``.
    usual_smoothing: ClassVar[Smoothing] = Smoothing(1.0)

    @abstractmethod
    def statistics(self, X: Matrix) -> tuple[Matrix, ...]:
        """Return the L statistics of every cell, sparse from sparse where zero is preserved."""

    @abstractmethod
    def natural(self, mean: Floats) -> Floats:
        """Return the natural parameters of the density whose statistics have this mean, shape (L, ...)."""

    @abstractmethod
    def mean(self, natural: Floats) -> Floats:
        """Return the mean of the statistics, the gradient of :meth:`log_partition`; shape (L, ...)."""

    @abstractmethod
    def log_partition(self, natural: Floats) -> Floats:
        """Return the log of the normaliser, shape (...)."""

    @abstractmethod
    def sample(self, natural: Floats, rng: np.random.Generator) -> Floats:
        """Return one draw for each parameter, shape (...)."""

    @abstractmethod
    def interior(self, mean: Floats) -> Booleans:
        """Return where a density has this mean: inside the domain, not on its boundary; shape (...)."""

    def log_base(self, x: npt.ArrayLike) -> Floats:
        """Return the log of the base measure, any shape; 0 by default."""
        return np.zeros(np.shape(x))

    def point(self, mean: Floats) -> Floats:
        """Return the value whose statistics are ``mean``, for a constant feature; shape (...)."""
        return mean[0]

    def solved(self, natural: Floats, mean: Floats) -> Booleans:
        """Return where :meth:`natural` found the parameters of ``mean``, shape (...)."""
        error = np.abs(self.mean(natural) - mean)
        return np.asarray((error <= 1e-6 * (1e-9 + np.abs(mean))).all(axis=0))

    def fitted(self, mean: Floats) -> tuple[Floats, Booleans, Booleans]:
        """Return natural parameters (L, ...), where they were found (...), and where means were adjusted."""
        natural = self.natural(mean)
        nowhere = np.zeros(natural.shape[1:], dtype=np.bool_)
        return natural, self.solved(natural, mean) if self.iterative else ~nowhere, nowhere

    def log_density(self, x: npt.ArrayLike, natural: Floats) -> Floats:
        """Return the log density (or probability) of values that broadcast against the parameters."""
        values = np.asarray(x, dtype=np.float64)
        exponent = sum(t * s for t, s in zip(natural, self.statistics(values), strict=True))
        return np.asarray(exponent - self.log_partition(natural) + self.log_base(values))

    def log_density_at(
        self, place: Floats, natural: Floats, log_partition: Floats | None = None, /
    ) -> Floats:
        """Return the log density along the unbounded axis of :meth:`maxdisc.families.Support.at`.

        The log-partition may be passed if it is already known. A family whose values or terms lose precision
        overrides this and computes from the place itself.
        """
        log_partition = self.log_partition(natural) if log_partition is None else log_partition
        with np.errstate(all="ignore"):
            x, log_slope = self.support.at(place)
            exponent = sum(t * s for t, s in zip(natural, self.statistics(x), strict=True))
            log_density = exponent - log_partition + self.log_base(x) + log_slope
        # Places beyond the numbers, where terms are infinite, have no mass.
        return np.where(log_density < np.inf, log_density, -np.inf)

    def peak(self, natural: Floats) -> tuple[Floats, Floats]:
        """Return where each density peaks on that axis, and its width there; each of shape (...).

        Integrals over several densities place their nodes by it: a peak much narrower than this width is
        missed. By default mean and standard deviation, from nodes that are dense near 0 and reach far out.
        """
        if self.support.lattice:
            place, step = self.support.quadrature()
        else:
            place = np.sinh(np.linspace(-14.0, 14.0, 1601))
            step = np.gradient(place)
        flat = natural.reshape(len(natural), -1)
        center, spread = np.empty(flat.shape[1]), np.empty(flat.shape[1])
        for some in blocks(len(center), len(place)):
            mass = step[:, None] * np.exp(self.log_density_at(place[:, None], flat[:, some]))
            mass /= np.maximum(mass.sum(axis=0), np.finfo(np.float64).tiny)
            center[some] = place @ mass
            spread[some] = np.sqrt((mass * (place[:, None] - center[some]) ** 2).sum(axis=0))
        # The log of a distance, or log-odds, bend within a unit, however wide the density.
        spread = spread if self.support.own_axis else np.minimum(spread, 1.0)
        return center.reshape(natural.shape[1:]), spread.reshape(natural.shape[1:])

    def entropy(self, natural: Floats) -> Floats:
        """Return the entropy in nats, ``-E log p``, shape (...); a base measure adds its part."""
        linear = (natural * self.mean(natural)).sum(axis=0)
        return np.asarray(self.log_partition(natural) - linear)

    def kl(self, p: Floats, q: Floats) -> Floats:
        """Return the Kullback-Leibler divergence KL(p || q) from natural parameters, shape (...)."""
        linear = ((p - q) * self.mean(p)).sum(axis=0)
        return np.asarray(linear - self.log_partition(p) + self.log_partition(q))

    def require(self, X: Matrix, names: npt.ArrayLike | None = None, first_row: int = 0) -> None:
        """Raise ``ValueError``, with the column's name and the value, for data out of the support."""
        owner = f"the {self.name} family"
        inside = Support(-self.largest, self.largest).intersection(self.support)
        inside.require(X, owner, names, self.integral, first_row)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(vars(self).items()))))
