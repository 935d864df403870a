"""How kernels are compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])


def kernel(function: Function) -> Function:
    """Compile when first called; the machine code is kept on disk where there is a place for it."""
    compiled: Any
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """For the small functions that kernels are made of."""
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    return cast(Function, compiled)


def contracted(function: Function) -> Function:
    """The same, where a product and a sum may be rounded once, together: most processors do that at once."""
    compiled: Any = numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})(function)
    return cast(Function, compiled)
