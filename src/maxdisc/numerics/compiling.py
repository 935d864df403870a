"""How kernels are compiled, and where their machine code is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

config: Any = numba.config
Function = TypeVar("Function", bound=Callable[..., Any])

#: The package; kernels are in its files called ``compiled_*.py``.
SOURCES = Path(__file__).parent.parent
#: Machine code of this many earlier versions is kept.
KEPT = 3


def kernel(function: Function) -> Function:
    """Compile when first called; the machine code is kept on disk where there is a place for it."""
    with _cache_of_these_sources() as is_there:
        compiled: Any = numba.njit(cache=is_there, nogil=True, error_model="numpy")(function)
    return cast(Function, compiled)


def inlined(function: Function) -> Function:
    """For the small functions that kernels are made of."""
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    return cast(Function, compiled)


def contracted(function: Function) -> Function:
    """The same, where a product and a sum may be rounded once, together: most processors do that at once."""
    compiled: Any = numba.njit(error_model="numpy", nogil=True, fastmath={"contract"})(function)
    return cast(Function, compiled)


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

    It is made in ``NUMBA_CACHE_DIR`` if that is set, else beside the sources, else in the user's cache.
    """
    digest = sha256()
    for path in [Path(__file__), *sorted(SOURCES.rglob("compiled_*.py"))]:
        digest.update(path.read_bytes())
    name = f"maxdisc-{numba.__version__}-{digest.hexdigest()[:16]}"
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
