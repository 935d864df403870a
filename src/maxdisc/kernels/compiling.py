"""How kernels are compiled, and how many of them run at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])
Item = TypeVar("Item")
Result = TypeVar("Result")


def kernel(function: Function) -> Function:
    """Compile when first called; the machine code is kept on disk where there is a place for it."""
    compiled: Any
    try:
        compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    except RuntimeError:  # neither the package's folder nor the user's cache can be written
        compiled = numba.njit(nogil=True, error_model="numpy")(function)
    return cast(Function, compiled)


#: For small functions that kernels are made of.
inlined: Any = numba.njit(inline="always", error_model="numpy")


def n_threads() -> int:
    """How many threads to use: ``MAXDISC_NUM_THREADS``, ``OMP_NUM_THREADS``, or one for each usable core."""
    for name in ("MAXDISC_NUM_THREADS", "OMP_NUM_THREADS"):
        if (value := os.environ.get(name, "")).isdecimal() and int(value) > 0:
            return int(value)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def in_threads(function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
    """``function`` of every item, in order; side by side where there is more than one thread."""
    threads = min(n_threads(), len(items))
    if threads < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
