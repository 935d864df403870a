"""Phases of a fit, for progress messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("phases", default=None)


def begin_phase(name: str) -> None:
    """Announce the phase that begins, such as "counting words", to a listener."""
    tell = _listener.get()
    if tell is not None:
        tell(name)


@contextmanager
def phases_told_to(tell: Callable[[str], None]) -> Iterator[None]:
    """Call a function with the name of each phase that begins in a block."""
    token = _listener.set(tell)
    try:
        yield
    finally:
        _listener.reset(token)
