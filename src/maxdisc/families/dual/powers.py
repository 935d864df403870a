"""Powers, each problem in a unit of its own."""

from __future__ import annotations

from math import comb
from typing import NamedTuple

import numpy as np

from maxdisc.families.dual.problem import nodes_at
from maxdisc.families.dual.quadrature import Basis
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Integers


class ScaledPowers(NamedTuple):
    """Powers of ``z = (x - center) / scale``, each problem about the end or the mean that is near."""

    center: Floats
    scale: Floats
    targets: Floats

    @classmethod
    def of(cls, support: Support, targets: Floats) -> ScaledPowers:
        """About the end or the mean that is near, in units of the distance or of the spread."""
        first = targets[0]
        if len(targets) > 1:
            spread = np.sqrt(np.maximum(targets[1] - first**2, 0.0))
        else:
            spread = np.full(first.shape, np.inf)
        from_low, from_high = first - support.low, support.high - first
        gap = np.minimum(from_low, from_high)
        near = gap <= 3 * spread
        center = np.where(near, np.where(from_low <= from_high, support.low, support.high), first)
        scale = np.where(near, gap, spread)
        return cls.about(center, np.where(scale > 0, scale, 1.0), targets)

    @classmethod
    def about(cls, center: Floats, scale: Floats, targets: Floats) -> ScaledPowers:
        """Return the moments of ``(x - center) / scale`` from those of x (binomial theorem)."""
        raw = np.vstack([np.ones_like(center), targets])
        moved = [
            sum(comb(k, j) * (-center) ** (k - j) * raw[j] for j in range(k + 1)) / scale**k
            for k in range(1, len(raw))
        ]
        return cls(center, scale, np.stack(moved))

    @classmethod
    def around(cls, support: Support, natural: Floats, start: Floats) -> ScaledPowers:
        """About where the densities of these parameters are largest, in a unit in which no term varies much
        more.
        """
        order = np.arange(1.0, len(natural) + 1)[:, None]
        with np.errstate(divide="ignore", over="ignore"):
            scale = (np.abs(natural) ** (-1 / order)).min(axis=0)
        scale = np.clip(scale, 1e-30, min(support.high - support.low, 1e30))
        if support.lattice:
            return cls(np.full(start.shape, support.low), np.ones(start.shape), natural)
        return cls(nodes_at(support, start).x, scale, natural)

    def raw(self, mean: Floats) -> Floats:
        """Means of the powers of x from those of the powers of z."""
        powers = [np.ones(self.center.shape), *mean]
        return np.stack(
            [
                sum(comb(k, j) * self.center ** (k - j) * self.scale**j * powers[j] for j in range(k + 1))
                for k in range(1, len(powers))
            ]
        )

    def basis(self, which: Integers) -> Basis:
        """Return the powers of z of some problems, as statistics."""
        center, scale = self.center[which], self.scale[which]

        def powers(x: Floats, statistics: Floats, owner: Integers) -> Floats:
            with np.errstate(all="ignore"):
                z = (x - center[owner][:, None]) / scale[owner][:, None]
                return np.stack([z ** (k + 1) for k in range(statistics.shape[1] - 1)], axis=1)

        return powers

    def ends(self, support: Support) -> tuple[Floats, Floats]:
        """Return the ends of the supports in z."""
        return (support.low - self.center) / self.scale, (support.high - self.center) / self.scale

    def natural(self, theta: Floats) -> Floats:
        """Parameters of the powers of x from those of the powers of z."""
        out = np.zeros_like(theta)
        for k in range(1, len(theta) + 1):
            coefficient = theta[k - 1] / self.scale**k
            for j in range(1, k + 1):
                out[j - 1] += comb(k, j) * (-self.center) ** (k - j) * coefficient
        return out

    def parameters(self, natural: Floats) -> Floats:
        """Return the inverse of :meth:`natural`."""
        out = np.zeros_like(natural)
        for k in range(1, len(natural) + 1):
            for j in range(1, k + 1):
                out[j - 1] += comb(k, j) * self.center ** (k - j) * natural[k - 1] * self.scale**j
        return out

    def candidates(self, support: Support) -> Floats:
        """Members to begin from, shape (K, L, M): exponentials from the ends, a Gaussian, the uniform.

        On unbounded supports only such as no small change of the highest parameter takes out of the family.
        """
        low, high = self.ends(support)
        mean, order = self.targets[0], len(self.targets)
        found: list[list[Floats]] = []
        if order > 1 and np.isinf(support.high - support.low):
            variance = self._width(support)
            # The density exp(last * z^L) has this highest moment.
            last = -1 / (order * np.maximum(np.abs(self.targets[-1]), 1e-300))
            last = -last if order % 2 and np.isinf(support.low) else last
            none = np.zeros_like(mean)
            gaussian = [mean / variance, -0.5 / variance, *[none] * (order - 2)]
            found = (
                [gaussian]
                if order == 2
                else [[*gaussian[:-1], share * last] for share in (1e-6, 1e-4, 0.01, 0.1, 1.0)]
            )
            found.append([none] * (order - 1) + [last])
            return np.array(found)

        def rate(gap: Floats) -> Floats:
            # Of an exponential with this mean, or of a geometric.
            gap = np.maximum(gap, 1e-300)
            return np.log1p(1 / (gap * self.scale)) * self.scale if support.lattice else 1 / gap

        if np.isfinite(support.low):
            found.append([-rate(mean - low)])
        if np.isfinite(support.high):
            found.append([rate(high - mean)])
        if len(found) == 2:
            found.append([np.zeros_like(mean)])
        if len(self.targets) > 1:
            variance = self._width(support)
            found.append([mean / variance, -0.5 / variance])
        out = np.zeros((len(found), *self.targets.shape))
        for row, member in zip(out, found, strict=True):
            row[: len(member)] = member
        return out

    def _width(self, support: Support) -> Floats:
        """Return the parameter of a Gaussian of about this variance."""
        variance = np.maximum(self.targets[1] - self.targets[0] ** 2, 1e-300)
        if not support.lattice:
            return variance
        # Next to a single point, its two neighbours share the variance.
        unit = 1 / self.scale**2
        return np.maximum(variance, unit / (2 * np.log1p(2 * unit / variance)))

    def feasible(self, support: Support) -> Booleans:
        """Return where the moments are feasible on the continuous support."""
        low, high = self.ends(support)
        z = np.vstack([np.ones_like(self.center), self.targets])
        order = len(self.targets)
        above = z[1:] - low * z[:-1] if np.isfinite(support.low) else None
        below = high * z[:-1] - z[1:] if np.isfinite(support.high) else None
        if above is not None and below is not None:
            both = below[1:] - low * below[:-1]
            checks = [z, both] if order % 2 == 0 else [above, below]
        else:
            one = above if above is not None else below
            checks = [z] if one is None else [z, one]
        good = np.ones(self.center.shape, dtype=np.bool_)
        for row in checks:
            size = (len(row) + 1) // 2
            hankel = np.stack([row[i : i + size] for i in range(size)]).transpose(2, 0, 1)
            root = np.sqrt(np.maximum(np.einsum("mii->mi", hankel), 0.0))
            good &= (root > 0).all(axis=1)
            root = np.where(root > 0, root, 1.0)
            unit = np.nan_to_num(hankel / root[:, :, None] / root[:, None, :])
            good &= np.linalg.eigvalsh(unit)[:, 0] > 1e-13
        return good

    def blurred(self, support: Support) -> Booleans:
        """Return where rounding of the raw moments dominates the higher central ones.

        So it is next to an end that is not 0. What two moments say is still told by them.
        """
        order = len(self.targets)
        noise = np.finfo(np.float64).eps * (1 + 2 * np.abs(self.center / self.scale)) ** order
        two = (
            ScaledPowers(self.center, self.scale, self.targets[:2]).feasible(support) if order > 2 else False
        )
        return np.asarray(two & (noise > 1e-10 * np.abs(self.targets[-1])))
