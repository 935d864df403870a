"""Exit codes of commands, and their error messages of one line."""

from __future__ import annotations

import _thread
import functools
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import typer

from maxdisc.cli.console import say_failure, say_traceback
from maxdisc.cli.standard_streams import OutputError

CHECK_FAILED, BAD_INPUT, DEFECT, INTERRUPTED, BROKEN_PIPE = 1, 2, 70, 130, 141

P = ParamSpec("P")
R = TypeVar("R")


class CheckFailedError(Exception):
    """A check that the user asked for did not hold."""


class BadInputError(ValueError):
    """Invalid input; the message says what is wrong and what to do."""


def command(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a command, so that errors end in an exit code and one line."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            with warnings.catch_warnings(), _Interrupts():
                # A command that has something to say of them takes this over.
                warnings.showwarning = lambda *_, **__: None
                # Columns of matrices have been matched by name before a model sees them.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                return function(*args, **kwargs)
        except (typer.Exit, typer.Abort):
            raise
        except BaseException as error:
            raise typer.Exit(exit_code(error)) from None

    return guarded


class _Interrupts:
    """Ctrl-C counts wherever it arrives, while a command runs.

    While a kernel is compiled, machine code calls back into Python, and what is raised there goes nowhere:
    numba's compiler would go on. So it is sent again a little later, as often as it takes.
    """

    def __enter__(self) -> None:
        self._lock, self._waits, self._over = threading.Lock(), False, False
        self._before, sys.unraisablehook = sys.unraisablehook, self._lost

    def __exit__(self, *_: object) -> None:
        sys.unraisablehook = self._before
        with self._lock:
            self._over = True

    def _lost(self, lost: Any) -> None:
        if lost.exc_type is not KeyboardInterrupt:
            self._before(lost)
        elif not self._waits:
            self._waits = True
            timer = threading.Timer(0.1, self._send)
            timer.daemon = True
            timer.start()

    def _send(self) -> None:
        with self._lock:
            self._waits = False
            if self._over:
                return
            if hasattr(signal, "pthread_kill"):  # what waits for input wakes up
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            else:
                _thread.interrupt_main()


def exit_code(error: BaseException) -> int:
    """Say what happened, and return the code that it deserves; raise what ends every program."""
    if isinstance(error, OutputError):
        if error.is_closed_pipe:
            return BROKEN_PIPE  # whoever read this has left
        say_failure(str(error))
        return BAD_INPUT
    if isinstance(error, KeyboardInterrupt):
        say_failure(str(error) or "stopped.")
        return INTERRUPTED
    if os.environ.get("MAXDISC_DEBUG"):
        say_traceback(error)
    if isinstance(error, CheckFailedError):
        say_failure(str(error))
        return CHECK_FAILED
    told = _told(error)
    if told is not None:
        say_failure(told)
        return BAD_INPUT
    if not isinstance(error, Exception):
        raise error
    say_failure(
        f"a defect of this program, please report it: {type(error).__name__}: {error} "
        "(MAXDISC_DEBUG=1 shows where)"
    )
    return DEFECT


def _told(error: BaseException) -> str | None:
    """Return the one line for a mistake that is not ours; None for a defect."""
    if isinstance(error, ModuleNotFoundError) and error.name in ("pyarrow", "matplotlib"):
        from maxdisc.numerics.installation import pip_line

        return f"this needs {error.name}, which is not installed: {pip_line('cli', 'plots')}"
    if isinstance(error, ImportError) and "pip install" in str(error):
        return str(error)
    if isinstance(error, MemoryError):
        return "there is not enough memory for this (fit --stream reads rows larger than memory)."
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror[:1].lower()}{error.strerror[1:]}."
    if isinstance(error, ValueError) and not isinstance(error, UnicodeError):
        return str(error)
    return None
