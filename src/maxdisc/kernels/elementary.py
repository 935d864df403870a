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
    """Exponential of a number that is not positive, in single precision; it vectorises. Level from -87."""
    x = max(np.float32(x), np.float32(-87.0))
    # Adding 1.5 * 2^23 leaves the nearest integer in the last bits.
    shifted = x * np.float32(1.44269504) + np.float32(12582912.0)
    k = shifted - np.float32(12582912.0)
    # Log 2 in two parts, of which the first has few bits: what k takes of it is exact.
    r = x - k * np.float32(0.693359375) + k * np.float32(2.12194440e-4)
    # The polynomial of Cephes; |r| is at most half of log 2.
    p = np.float32(1.9875691500e-4) * r + np.float32(1.3981999507e-3)
    p = p * r + np.float32(8.3334519073e-3)
    p = p * r + np.float32(4.1665795894e-2)
    p = p * r + np.float32(1.6666665459e-1)
    p = p * r + np.float32(5.0000001201e-1)
    p = p * (r * r) + r + np.float32(1.0)
    return p * np.int32((np.float32(shifted).view(np.int32) + 127) << 23).view(np.float32)
