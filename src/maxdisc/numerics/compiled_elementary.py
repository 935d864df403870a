"""Logarithm and exponential as polynomials, which vectorise: a call of the library's would not."""

from __future__ import annotations

from typing import Any

import numpy as np

from maxdisc.numerics.compiling import contracted, inlined


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


@contracted
def exp2(x: Any) -> Any:
    """Two to a power that is not positive, in single precision, to 1e-7; it vectorises. Level from -125."""
    x = max(np.float32(x), np.float32(-125.0))
    # Adding 1.5 * 2^23 leaves the nearest integer in the last bits.
    shifted = x + np.float32(12582912.0)
    r = x - (shifted - np.float32(12582912.0))
    # The polynomial of Cephes; |r| is at most a half.
    p = np.float32(1.535336188319500e-4) * r + np.float32(1.339887440266574e-3)
    p = p * r + np.float32(9.618437357674640e-3)
    p = p * r + np.float32(5.550332471162809e-2)
    p = p * r + np.float32(2.402264791363012e-1)
    p = p * r + np.float32(6.931472028550421e-1)
    p = p * r + np.float32(1.0)
    return p * np.int32((np.float32(shifted).view(np.int32) + 127) << 23).view(np.float32)
