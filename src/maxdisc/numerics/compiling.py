"""Compilation of kernels, and the cache of machine code."""

from __future__ import annotations

import gc
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core import event

config: Any = numba.config
#: With options that its annotations do not know, and without annotations.
njit: Any = numba.njit
register: Any = event.register
Function = TypeVar("Function", bound=Callable[..., Any])

#: The package; kernels are in its files called ``compiled_*.py``.
SOURCES = Path(__file__).parent.parent
#: Machine code of this many earlier versions is kept.
KEPT = 3


#: Message on a terminal when compilation begins.
ANNOUNCEMENT = "maxdisc: compiling code for this machine, which takes some seconds; later fits begin at once."
#: What all compiled functions have in common; none is called from C.
OPTIONS: dict[str, Any] = {"error_model": "numpy", "nogil": True, "no_cfunc_wrapper": True}


def kernel(function: Function) -> Function:
    """Compile when first called; the machine code is kept on disk where there is a place for it."""
    with _cache_of_these_sources() as is_there:
        compiled: Any = njit(cache=is_there, **OPTIONS)(function)
    _announce_compilation_of(compiled)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """For the small functions that kernels are made of."""
    compiled: Any = njit(no_cpython_wrapper=True, **OPTIONS)(function)
    return cast(Function, compiled)


def contracted(function: Function) -> Function:
    """The same, where a product and a sum may be rounded once, together: most processors do that at once."""
    compiled: Any = njit(no_cpython_wrapper=True, fastmath={"contract"}, **OPTIONS)(function)
    return cast(Function, compiled)


class _Announcement(event.Listener):
    """Says once, on a terminal, that kernels are compiled, and measures how long that takes.

    Meanwhile no garbage is collected: a compiler makes millions of objects, and looking through them and
    through the documents of a user again and again takes an eighth of its time.
    """

    def __init__(self) -> None:
        self.kernels: set[Any] = set()
        self.is_due = True
        self.collects = False
        self.count, self.seconds = 0, 0.0
        self._begun: list[float] = []

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] not in self.kernels:
            return
        self._begun.append(time.perf_counter())
        if len(self._begun) == 1:
            self.collects = gc.isenabled()
            gc.disable()
        if not self.is_due:
            return
        self.is_due = False
        if sys.stderr is not None and sys.stderr.isatty():
            print(ANNOUNCEMENT, file=sys.stderr)

    def on_end(self, event: Any) -> None:
        """Add up; numba compiles under a lock, so what begins meanwhile is part of the same kernel."""
        if event.data["dispatcher"] not in self.kernels or not self._begun:
            return
        begun = self._begun.pop()
        if self._begun:
            return
        self.count, self.seconds = self.count + 1, self.seconds + time.perf_counter() - begun
        if self.collects:
            gc.enable()


_announcement = _Announcement()


def compiled_so_far() -> tuple[int, float]:
    """Return how many kernels this process has compiled, and in how many seconds."""
    return _announcement.count, _announcement.seconds


def _announce_compilation_of(compiled: Any) -> None:
    if not _announcement.kernels:
        register("numba:compile", _announcement)
    _announcement.kernels.add(compiled)


@contextmanager
def _cache_of_these_sources() -> Iterator[bool]:
    """Have numba keep what is compiled inside in :func:`cache_folder`; False where there is no such place.

    By itself numba looks only at the file of a kernel, not at those of the functions inlined in it, and
    versions of numba overwrite each other's index.
    """
    folder, before = cache_folder(), config.CACHE_DIR
    if folder is None:
        yield False
        return
    config.CACHE_DIR = str(folder)
    try:
        yield True
    finally:
        config.CACHE_DIR = before


@cache
def cache_folder() -> Path | None:
    """Return the folder for machine code of these sources by this version of numba, or None.

    It is in ``NUMBA_CACHE_DIR`` if that is set, else next to the sources, else in the user's cache. Code with
    bounds checks (``NUMBA_BOUNDSCHECK=1``) has a folder of its own: found where it is not asked for, it would
    be slow, and code without them would check nothing.
    """
    digest = sha256()
    for path in [Path(__file__), *sorted(SOURCES.rglob("compiled_*.py"))]:
        digest.update(path.read_bytes())
    name = f"maxdisc-{numba.__version__}-{digest.hexdigest()[:16]}{'-checked' * bool(config.BOUNDSCHECK)}"
    user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for place in [Path(given)] if (given := config.CACHE_DIR) else [SOURCES / "__pycache__", user]:
        folder = place / name
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            # Used last, so removed last.
            os.utime(folder)
            _remove_old(place)
            if os.access(folder, os.W_OK):
                return folder
    return None


def _remove_old(place: Path) -> None:
    """Remove the machine code of all but some earlier versions."""
    folders = sorted(place.glob("maxdisc-*-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    for folder in folders[1 + KEPT :]:
        shutil.rmtree(folder, ignore_errors=True)
