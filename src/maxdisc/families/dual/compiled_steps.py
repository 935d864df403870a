"""What the kernels of the dual share: a quick exponential, a small linear solver, and damped steps."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiling import inlined

#: As in :mod:`maxdisc.families.dual`.
AIM = 1e-12
# What the iterations know of themselves.
VALUE, WORST, SLOPE, LENGTH, STALLED, TURNED = 0, 1, 2, 3, 4, 5


@inlined
def exp_of_negative(x: Any) -> Any:
    """Exponential of a number that is not positive, to a few units in the last place; it vectorises."""
    x = x if x > -700.0 else -700.0
    # Adding 1.5 * 2^52 leaves the nearest integer in the last bits.
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    whole = shifted - 6755399441055744.0
    r = (x - whole * 6.93147180369123816490e-01) - whole * 1.90821492927058770002e-10
    # Taylor's polynomial, even and odd halves side by side; |r| is at most half of log 2.
    q = r * r
    even = 2.08767569878681e-09 * q + 2.755731922398589e-07
    odd = 1.6059043836821613e-10 * q + 2.505210838544172e-08
    even = even * q + 2.48015873015873e-05
    odd = odd * q + 2.7557319223985893e-06
    even = even * q + 0.001388888888888889
    odd = odd * q + 0.0001984126984126984
    even = even * q + 0.041666666666666664
    odd = odd * q + 0.008333333333333333
    even = even * q + 0.5
    odd = odd * q + 0.16666666666666666
    even = even * q + 1.0
    odd = odd * q + 1.0
    return (even + r * odd) * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)


@inlined
def factorise(matrix: Any, factor: Any) -> bool:
    """Cholesky's factor of a covariance in statistics of unit variance; False where there is none."""
    n = matrix.shape[0]
    for i in range(n):
        if not (matrix[i, i] > 0.0 and matrix[i, i] < 1e300):
            return False
    for i in range(n):
        for j in range(i + 1):
            total = matrix[i, j] / np.sqrt(matrix[i, i] * matrix[j, j])
            if i == j:
                total += 1e-14
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                if not total > 1e-15:
                    total = 1e-15
                factor[i, i] = np.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    return True


@inlined
def solve_factorised(matrix: Any, factor: Any, right: Any, out: Any) -> None:
    """``matrix^-1 right``."""
    n = right.size
    for i in range(n):
        total = right[i] / np.sqrt(matrix[i, i])
        for k in range(i):
            total -= factor[i, k] * out[k]
        out[i] = total / factor[i, i]
    for i in range(n - 1, -1, -1):
        total = out[i]
        for k in range(i + 1, n):
            total -= factor[k, i] * out[k]
        out[i] = total / factor[i, i]
    for i in range(n):
        out[i] /= np.sqrt(matrix[i, i])


@inlined
def begin_anew(state: Any) -> None:
    """Nothing is known yet."""
    state[VALUE], state[WORST], state[SLOPE], state[LENGTH] = np.inf, np.inf, 0.0, 1.0
    state[STALLED], state[TURNED] = 0.0, 0.0


@inlined
def accepts(state: Any, ready: Any, found: Any, left: Any) -> Any:
    """Whether a trial with this value of the dual, and this error of the moments, is better."""
    value, slope = state[VALUE], state[SLOPE]
    if not ready:
        good = found < value
    elif abs(slope) < 1e-10 * (1.0 + abs(value)):
        # Values differ by rounding alone: the error of the moments decides.
        good = left < state[WORST]
    else:
        good = found <= value + 1e-4 * state[LENGTH] * slope + 1e-13 * (1.0 + abs(value))
    good = good and found > -np.inf and found < np.inf and left < np.inf
    state[STALLED] = 0.0 if good and left < 0.5 * state[WORST] else state[STALLED] + 1.0
    if good:
        state[VALUE], state[WORST] = found, left
    return good


@inlined
def finished(state: Any) -> Any:
    """Whether the moments are met, or as well as rounding lets them."""
    return state[WORST] <= AIM or (state[WORST] <= 1e-10 and state[STALLED] > 2)


@inlined
def redirects(
    good: Any, state: Any, error: Any, matrix: Any, factor: Any, peak: Any, aside: Any, step: Any
) -> Any:
    """The next step: Newton's after a good trial, else one that turns aside or is shorter; False if none is.

    ``peak`` has the statistics where the trial was largest, less the targets.
    """
    n = error.size
    if good:
        if not factorise(matrix, factor):
            return False
        solve_factorised(matrix, factor, error, step)
        state[SLOPE], state[TURNED] = 0.0, 0.0
        for k in range(n):
            step[k] = -step[k]
            state[SLOPE] += step[k] * error[k]
        state[LENGTH] = min(1.0, 4.0 * state[LENGTH])
        return True
    # The step may have raised a peak far away, where nothing was: turn aside from it, if that leads on.
    rise, bend, slope = 0.0, 0.0, 0.0
    for k in range(n):
        peak[k] -= error[k]
        rise += peak[k] * step[k]
    if state[TURNED] == 0.0 and rise > 0.0 and rise < np.inf:
        solve_factorised(matrix, factor, peak, aside)
        for k in range(n):
            bend += peak[k] * aside[k]
        for k in range(n):
            aside[k] = step[k] - aside[k] * (rise / bend)
            slope += aside[k] * error[k]
        if slope < 0.1 * state[SLOPE]:
            state[SLOPE], state[TURNED], state[LENGTH] = slope, 1.0, 1.0
            for k in range(n):
                step[k] = aside[k]
            return True
    state[LENGTH] *= 0.25
    return state[LENGTH] >= 1e-12
