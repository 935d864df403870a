"""How many things are done at once: over ranges of rows or features, so that results never depend on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def n_threads() -> int:
    """How many threads to use: ``MAXDISC_NUM_THREADS``, ``OMP_NUM_THREADS``, or one for each usable core."""
    for name in ("MAXDISC_NUM_THREADS", "OMP_NUM_THREADS"):
        if (value := os.environ.get(name, "")).isdecimal() and int(value) > 0:
            return int(value)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def in_threads(
    function: Callable[[Item], Result], items: Sequence[Item], most: int | None = None
) -> list[Result]:
    """``function`` of every item, in order; side by side where there is more than one thread.

    Parameters
    ----------
    function : callable
        It gains only if it spends its time in code that holds no lock, such as numpy's and the kernels'.
    items : sequence
        What it is called with.
    most : int, optional
        At most so many at once, where each takes much memory.

    Examples
    --------
    >>> from maxdisc.threads import in_threads
    >>> in_threads(len, ["a", "bb", ""])
    [1, 2, 0]
    """
    threads = min(n_threads(), len(items), most or len(items))
    if threads < 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
