"""Selection of compiled or plain code, and of batch sizes.

Both depend only on the size of a problem, so that a result never depends on what else a process has done.
Tests set them by :func:`maxdisc.testing.taking` and :func:`maxdisc.testing.batches_of`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Literal, get_args

Way = Literal["by size", "compiled", "plain"]


@dataclass
class _Switches:
    way: Way = "by size"
    batch: int | None = None


# Of the whole process, not of a context: work is handed to threads that were started elsewhere.
_now = _Switches()


def is_compiled(size: int, least: int) -> bool:
    """Return whether to use compiled code for a problem of this size; by default from ``least`` on."""
    wanted = size >= least if _now.way == "by size" else _now.way == "compiled"
    return wanted and works()


@cache
def works() -> bool:
    """Return whether kernels can be compiled; where numba is missing or broken this is said once.

    Asked only where the data are large enough for them: importing numba takes time. Slower code then does the
    same.
    """
    try:
        import_module("numba")
    except Exception as error:  # a broken installation may raise anything
        reason = " ".join(str(error).split()) or type(error).__name__
        warnings.warn(
            f"numba cannot be used ({reason}), so slower code is used: reinstall numba to use compiled code.",
            RuntimeWarning,
            stacklevel=3,
        )
        return False
    return True


def batch_size(usual: int, unit: int = 1) -> int:
    """Return the batch size; ``unit`` is the size of an item where batches are counted in bytes."""
    return usual if _now.batch is None else _now.batch * unit


@contextmanager
def taking(way: Way) -> Iterator[None]:
    """Use compiled or plain code inside, for any size.

    Parameters
    ----------
    way : {"by size", "compiled", "plain"}
        The implementation; "by size" is the default.

    Yields
    ------
    None
        The switch holds for the whole process, and is reset at the end.

    Examples
    --------
    >>> from maxdisc.numerics.switches import is_compiled
    >>> from maxdisc.testing import taking
    >>> with taking("plain"):
    ...     is_compiled(10**9, least=1)
    False
    """
    if way not in get_args(Way):
        raise ValueError(f"Unknown way {way!r}. Use one of {', '.join(map(repr, get_args(Way)))}.")
    before, _now.way = _now.way, way
    try:
        yield
    finally:
        _now.way = before


@contextmanager
def batches_of(items: int) -> Iterator[None]:
    """Work in batches of this many items inside: rows, features, cells or documents.

    Parameters
    ----------
    items : int
        Batch size, at least 1. Results do not depend on it.

    Yields
    ------
    None
        The switch holds for the whole process, and is reset at the end.

    Examples
    --------
    >>> from maxdisc.numerics.matrices import blocks
    >>> from maxdisc.testing import batches_of
    >>> with batches_of(2):
    ...     list(blocks(5, width=10))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    if items < 1:
        raise ValueError(f"items must be at least 1, got {items}.")
    before, _now.batch = _now.batch, items
    try:
        yield
    finally:
        _now.batch = before
