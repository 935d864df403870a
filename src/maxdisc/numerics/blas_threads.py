"""Limits on the threads of BLAS and OpenMP, which hold for the whole process."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits


class _BlasThreads:
    """Limits that hold while anyone inside asks for them: the least of all, and none at the end.

    Fits side by side may end in any order. Each restoring what it found would leave limits behind, or lift
    those of others.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asked: list[int] = []
        self._before: list[int] = []
        self._libraries: list[Any] | None = None

    def enter(self, most: int) -> list[int]:
        """Return the numbers of threads that :meth:`leave` wants to know."""
        with self._lock:
            if self._libraries is None:
                # Looking for them takes as long as a small fit.
                self._libraries = ThreadpoolController().select(user_api="blas").lib_controllers
            before = [library.get_num_threads() or 1 for library in self._libraries]
            if not self._asked:
                self._before = before
            self._asked.append(most)
            self._apply(before)
            return before

    def leave(self, most: int, before: list[int]) -> None:
        with self._lock:
            if most in self._asked:  # not in a child of the process, which begins anew
                self._asked.remove(most)
                self._apply(before, is_end=True)

    def begin_anew(self) -> None:
        """Forget the limits of threads that a fork has left behind."""
        self._lock = threading.Lock()
        if self._asked:
            self._asked = []
            self._apply(self._before, is_end=True)

    def _apply(self, own: list[int], is_end: bool = False) -> None:
        for library, before, mine in zip(self._libraries or (), self._before, own, strict=True):
            if getattr(library, "threading_layer", "") == "openmp":
                # Of this thread alone: nobody else's limits matter.
                _set_threads(library, mine if is_end else min(mine, self._asked[-1]))
            else:
                _set_threads(library, min([before, *self._asked]))


def _set_threads(library: Any, count: int) -> None:
    """Set the number of threads, from any thread: threadpoolctl leaves this to the first that asks."""
    free = getattr(library, "clear_controlling_thread", lambda **_: None)
    free(force=True)
    library.set_num_threads(count)
    free(force=True)


_blas = _BlasThreads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas.begin_anew)


@contextmanager
def limited_blas(most: int | None) -> Iterator[None]:
    """Have BLAS take at most this many threads in a block; None for as many as it does."""
    if most is None:
        yield
        return
    before = _blas.enter(most)
    try:
        yield
    finally:
        _blas.leave(most, before)


@contextmanager
def limited_openmp(most: int | None) -> Iterator[None]:
    """Have OpenMP, which scikit-learn's trees use, take at most this many threads in a block."""
    if most is None:
        yield
        return
    with threadpool_limits(most, user_api="openmp"):
        yield
