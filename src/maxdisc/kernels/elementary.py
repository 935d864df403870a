"""Logarithm and exponential as polynomials, which vectorise: a call of the library's would not."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.kernels.compiling import inlined


@inlined
def log(x: Any) -> Any:
    """Natural logarithm of a normal positive number, to one unit in the last place; it vectorises.

    With x = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2): a polynomial in (f / (2 + f))^2, as in fdlibm.
    """
    bits = np.float64(x).view(np.int64)
    exponent = (bits - np.int64(0x3FE6A09E667F3BCD)) >> 52
    f = np.int64(bits - (exponent << 52)).view(np.float64) - 1.0
    k = np.float64(exponent)
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    even = w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01))
    odd = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    odd = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * odd))
    half = 0.5 * f * f
    small = s * (half + even + odd) + k * 1.90821492927058770002e-10
    return k * 6.93147180369123816490e-01 - ((half - small) - f)


@inlined
def log1p(x: Any) -> Any:
    """log(1 + x) for x > -1, with what rounding took from 1 + x given back."""
    w = 1.0 + x
    return log(w) - ((w - 1.0) - x) / w


@inlined
def exp(x: Any) -> Any:
    """Exponential of a number that is not positive, to about 1e-10; it vectorises. At -700 it is level."""
    x = x if x > -700.0 else -700.0
    # Adding 1.5 * 2^52 leaves the nearest integer in the last bits.
    shifted = x * 1.4426950408889634 + 6755399441055744.0
    r = x - (shifted - 6755399441055744.0) * 0.6931471805599453
    # Taylor's polynomial; |r| is at most half of log 2.
    p = 2.7557319223985893e-06 * r + 2.48015873015873e-05
    p = p * r + 0.0001984126984126984
    p = p * r + 0.001388888888888889
    p = p * r + 0.008333333333333333
    p = p * r + 0.041666666666666664
    p = p * r + 0.16666666666666666
    p = p * r + 0.5
    p = p * r + 1.0
    p = p * r + 1.0
    return p * np.int64((np.float64(shifted).view(np.int64) + 1023) << 52).view(np.float64)
