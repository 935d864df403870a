"""Supports of features: their range, validation of values, and integrals."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from maxdisc.numerics.matrices import Booleans, Floats, Matrix, blocks, column_name, is_sparse

#: So many numbers of double precision fit into the caches of one core.
NEAR_CELLS = 2**14


@dataclass(frozen=True)
class Support:
    """The set of values a feature may take.

    Parameters
    ----------
    low, high : float
        The ends of the range; an infinite end means there is none.
    lattice : bool
        Whether the values are the integers of the range, so that integrals over it are sums.
    open_low, open_high : bool
        Whether the end is excluded.
    atoms : tuple of float
        Points of a continuous range that have positive mass.

    Examples
    --------
    >>> from maxdisc.families import Support
    >>> Support(0.0, 1.0)
    Support [0, 1]
    >>> bool(Support(0.0, open_low=True).contains(0.0))
    False
    """

    low: float = -np.inf
    high: float = np.inf
    lattice: bool = False
    open_low: bool = False
    open_high: bool = False
    atoms: tuple[float, ...] = ()

    def __repr__(self) -> str:
        left = "(" if self.open_low or np.isinf(self.low) else "["
        right = ")" if self.open_high or np.isinf(self.high) else "]"
        return f"Support {left}{self.low:g}, {self.high:g}{right}{' integers' if self.lattice else ''}"

    def intersection(self, other: Support) -> Support:
        """Return the values of ``other`` within this range; its atoms and lattice are kept."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return replace(other, low=low, high=high)

    def contains(self, x: npt.ArrayLike, integral: bool = False) -> Booleans:
        """Return which values lie in the range; NaN, a missing cell, counts as inside, infinity never does.

        Parameters
        ----------
        x : array_like
            Values of any shape.
        integral : bool
            Whether a value must also be an integer.

        Returns
        -------
        ndarray of bool
            The shape of ``x``.
        """
        values = np.asarray(x)
        # In double precision, because the ends may be beyond single precision.
        low, high = np.float64(self.low), np.float64(self.high)
        inside = (values > low) if self.open_low else (values >= low)
        inside &= (values < high) if self.open_high else (values <= high)
        inside &= ~np.isinf(values)
        if integral:
            inside &= values == np.rint(values)
        return np.asarray(inside | np.isnan(values), dtype=np.bool_)

    def require(
        self,
        X: Matrix,
        owner: str,
        names: npt.ArrayLike | None = None,
        integral: bool = False,
        first_row: int = 0,
    ) -> None:
        """Raise ``ValueError`` for the first value of ``X`` out of range, naming its column and row.

        Parameters
        ----------
        X : matrix of shape (N, D)
            Dense or sparse; the zeros that a sparse matrix does not store are values, too.
        owner : str
            Name of the family, for the message.
        names : array_like of str, shape (D,), optional
            The names of the columns.
        integral : bool
            Whether values must be integers as well.
        first_row : int
            The number of the first row, where ``X`` is a batch.
        """
        if is_sparse(X):
            self._require_sparse(X.tocsr(), owner, names, integral, first_row)
            return
        values = np.asarray(X)
        for rows in blocks(*values.shape):
            if not integral and self._spans(values[rows], may_miss=True):
                continue
            inside = self.contains(values[rows], integral)
            if not inside.all():
                row, column = np.argwhere(~inside)[0]
                self._reject(
                    values[rows][row, column], first_row + rows.start + row, column, owner, names, integral
                )

    def _spans(self, values: npt.NDArray[np.generic], may_miss: bool) -> bool:
        """Return whether the smallest and the largest value lie in the range."""
        least, largest = (np.fmin, np.fmax) if may_miss else (np.minimum, np.maximum)
        ends: list[float] = []
        with np.errstate(invalid="ignore"):
            # So few at a time that they are still near the processor when they are read again.
            for some in blocks(len(values), values.size // max(len(values), 1), NEAR_CELLS):
                if values[some].size:
                    ends += [float(end.reduce(values[some], axis=None)) for end in (least, largest)]
        return all(self._holds(end) or (may_miss and end != end) for end in ends)

    def _holds(self, value: float) -> bool:
        """Return whether one value, which is not NaN, lies in the range."""
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below and not math.isinf(value)

    def _require_sparse(
        self, X: Matrix, owner: str, names: npt.ArrayLike | None, integral: bool, first_row: int
    ) -> None:
        outside = np.zeros(0, dtype=np.intp)
        if integral or not self._spans(X.data, may_miss=False):
            outside = np.flatnonzero(~self.contains(X.data, integral) | np.isnan(X.data))
        if outside.size:
            row = int(np.searchsorted(X.indptr, outside[0], side="right")) - 1
            self._reject(X.data[outside[0]], first_row + row, X.indices[outside[0]], owner, names, integral)
        if self._holds(0.0):
            return
        stored = np.diff(X.indptr)
        if (stored < X.shape[1]).any():
            row = int(np.argmax(stored < X.shape[1]))
            present = X.indices[X.indptr[row] : X.indptr[row + 1]]
            column = int(np.setdiff1d(np.arange(X.shape[1]), present)[0])
            self._reject(0.0, first_row + row, column, owner, names, integral)

    def _reject(
        self,
        value: float,
        row: int,
        column: int,
        owner: str,
        names: npt.ArrayLike | None,
        integral: bool,
    ) -> None:
        value = float(value)  # the ends may lie beyond single precision
        left = "greater than" if self.open_low else "at least"
        right = "less than" if self.open_high else "at most"
        # Ends that are mere limits of double precision are mentioned only to those who hit them.
        bounds = [f"{left} {self.low:g}"] * bool(abs(self.low) < 1e100 or -np.inf < value < self.low)
        bounds += [f"{right} {self.high:g}"] * bool(abs(self.high) < 1e100 or self.high < value < np.inf)
        kind = "integers" if integral else "finite numbers"
        wanted = " ".join([kind, " and ".join(bounds)]).strip()
        # scikit-learn's callers look for these words.
        negative = "Negative values in data: " if self.low == 0 and value < 0 else ""
        raise ValueError(
            f"{negative}{owner} takes {wanted}, but {column_name(column, names)} has {value:g} in row {row}."
        )

    @property
    def own_axis(self) -> bool:
        """Whether :meth:`at` is the identity: on a lattice, and on the whole line."""
        return self.lattice or not (np.isfinite(self.low) or np.isfinite(self.high))

    def place(self, x: npt.ArrayLike) -> Floats:
        """Return where values inside the range are on the axis of :meth:`at`, any shape."""
        values = np.asarray(x, dtype=np.float64)
        if self.own_axis:
            return values
        if not np.isfinite(self.high):
            return np.asarray(np.log(values - self.low))
        if not np.isfinite(self.low):
            return np.asarray(np.log(self.high - values))
        return np.asarray(np.log(values - self.low) - np.log(self.high - values))

    def at(self, place: Floats) -> tuple[Floats, Floats]:
        """Return the values at some places of an unbounded axis, and the log of their slope there.

        A lattice and the line are their own axis; on a half-line it is the log of the distance from the end,
        on an interval the log-odds of the share that lies below.

        Parameters
        ----------
        place : ndarray
            Any shape.

        Returns
        -------
        x, log_slope : ndarray
            The shape of ``place``.

        Examples
        --------
        >>> import numpy as np
        >>> from maxdisc.families import Support
        >>> x, log_slope = Support(0.0, 1.0).at(np.array([0.0]))
        >>> x, np.exp(log_slope)
        (array([0.5]), array([0.25]))
        """
        if self.own_axis:
            return place, np.zeros_like(place)
        if np.isfinite(self.low) and np.isfinite(self.high):
            width = self.high - self.low
            slope = np.log(width) - np.logaddexp(0.0, place) - np.logaddexp(0.0, -place)
            return self.low + width * expit(place), slope
        reach = np.exp(place)
        return (self.low + reach if np.isfinite(self.low) else self.high - reach), place

    def quadrature(
        self, center: float = 0.0, scale: float = 1.0, n_nodes: int = 801
    ) -> tuple[Floats, Floats]:
        """Return nodes and weights for integrals over the support, graded towards its ends.

        Continuous ranges use the double-exponential rule, which handles integrable singularities at the ends,
        and tails; lattices are summed from their lowest point.

        Parameters
        ----------
        center, scale : float
            Location and scale of the mass, for infinite ranges.
        n_nodes : int
            Number of nodes.

        Returns
        -------
        nodes, weights : ndarray of shape (n,)
            At most ``n_nodes`` plus the atoms.

        Examples
        --------
        >>> import numpy as np
        >>> from maxdisc.families import Support
        >>> x, w = Support(0.0, np.inf).quadrature()
        >>> round(float(w @ np.exp(-x)), 12)
        1.0
        """
        if self.lattice:
            if not np.isfinite(self.low):
                raise ValueError("a lattice needs a finite lower end to be summed from.")
            top = min(self.high, self.low + n_nodes - 1)
            nodes = np.arange(self.low, top + 1)
            return nodes, np.ones_like(nodes)
        nodes, weights = self._graded(center, scale, n_nodes)
        keep = (nodes > self.low) & (nodes < self.high) & (weights > 0) & np.isfinite(weights)
        points = np.asarray(self.atoms, dtype=np.float64)
        return np.r_[points, nodes[keep]], np.r_[np.ones_like(points), weights[keep]]

    def _graded(self, center: float, scale: float, n_nodes: int) -> tuple[Floats, Floats]:
        # Out to 1e-137 of the scale: a density may rise as steeply as x ** -0.95.
        t, step = np.linspace(-6.0, 6.0, n_nodes, retstep=True)
        u, du = 0.5 * np.pi * np.sinh(t), 0.5 * np.pi * np.cosh(t) * step
        if np.isfinite(self.low) and np.isfinite(self.high):
            width = self.high - self.low
            # 1 / (1 + exp(-2u)) keeps its digits near 0, where densities may be singular.
            return self.low + width / (1 + np.exp(-2 * u)), width * du / (2 * np.cosh(u) ** 2)
        if np.isfinite(self.low):
            reach = scale * np.exp(u)
            return self.low + reach, reach * du
        if np.isfinite(self.high):
            reach = scale * np.exp(u)
            return self.high - reach, reach * du
        return center + scale * np.sinh(u / 4), scale * np.cosh(u / 4) * du / 4
