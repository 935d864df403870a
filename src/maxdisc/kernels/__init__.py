"""Compiled inner loops, imported only when the data are large enough to pay for it.

Nothing here is called directly by users. Every kernel has a plain numpy or Python version elsewhere, which is
the way for small data and the oracle of the tests. Kernels hold no lock while they run, so
:func:`maxdisc.threads.in_threads` runs them side by side over ranges; none starts threads of its own.
"""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module


@cache
def works() -> bool:
    """Whether kernels can be compiled; where numba is missing or broken this is said once.

    Asked only where the data are large enough for them: importing numba takes time. Slower code then does the
    same.
    """
    try:
        import_module("numba")
    except Exception as error:  # whatever a broken installation raises
        reason = " ".join(str(error).split()) or type(error).__name__
        warnings.warn(
            f"numba cannot be used ({reason}), so slower code does the same: install numba again to get the "
            "compiled one.",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    return True
