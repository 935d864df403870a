"""Standard output and standard error of a command: written completely, or with an error."""

from __future__ import annotations

import errno
import io
import os
import select
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO, cast


class OutputError(Exception):
    """Standard output did not take all that was written to it.

    It is no ``OSError``: libraries answer those of a closed pipe by leaving the program in ways of their own.
    """

    def __init__(self, error: OSError) -> None:
        reason = error.strerror or str(error)
        super().__init__(f"standard output: {reason[:1].lower()}{reason[1:]}.")
        self.is_closed_pipe = error.errno == errno.EPIPE


class WholeStream(io.RawIOBase):
    """Bytes that go to another stream, all of them, or raise :class:`OutputError` from then on.

    A raw stream takes as many bytes as it likes and says how many; it takes none while a pipe that must not
    block is full. What is lost once leaves a gap, so nothing is written behind it. ``optional`` bytes, those
    of standard error, are lost in silence.
    """

    def __init__(self, raw: Any, optional: bool = False) -> None:
        self._raw, self._optional = raw, optional
        self._lock = threading.RLock()  # lines of several threads stay whole
        self._failure: OutputError | None = None

    def write(self, data: Any) -> int:
        """Write all bytes, and return how many these are."""
        whole, written = memoryview(data).cast("B"), 0
        with self._lock:
            while written < len(whole) and self._failure is None:
                try:
                    written += self._raw.write(whole[written:]) or self._wait()
                except InterruptedError:
                    continue
                except BlockingIOError as error:
                    written += getattr(error, "characters_written", 0) or self._wait()
                except OSError as error:
                    self._failure = OutputError(error)
            self.require_whole()
        return len(whole)

    def require_whole(self) -> None:
        """Raise the failure of a write, even if it was caught."""
        if self._failure is not None and not self._optional:
            raise self._failure

    def _wait(self) -> int:
        """Wait until the stream may take more; return that it has taken nothing so far."""
        try:
            select.select([], [self.fileno()], [])
        except (OSError, ValueError):  # it cannot be waited for
            time.sleep(0.01)
        return 0

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return bool(self._raw.isatty())

    def fileno(self) -> int:
        return int(self._raw.fileno())


class _Closed(io.RawIOBase):
    """What the process was started without."""

    def write(self, _: Any) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))


@contextmanager
def whole_streams() -> Iterator[Callable[[], None]]:
    """Replace ``sys.stdout`` and ``sys.stderr`` by streams that are written whole.

    Yields a function that writes what is still due, and raises :class:`OutputError` unless standard output
    took everything. Standard input that the process was started without is empty.
    """
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = sys.stdin or io.TextIOWrapper(io.BytesIO())
    sys.stdout, output = _whole(sys.stdout)
    sys.stderr, _ = _whole(sys.stderr, optional=True)

    def finish() -> None:
        sys.stdout.flush()
        if output is not None:
            output.require_whole()

    try:
        yield finish
    finally:
        with suppress(OutputError):  # this has been said
            sys.stdout.flush()
        sys.stderr.flush()
        sys.stdin, sys.stdout, sys.stderr = before


def _whole(stream: TextIO | None, optional: bool = False) -> tuple[TextIO, WholeStream | None]:
    """Return a stream of text, and that of bytes below it; text that has no bytes below is left alone."""
    if stream is None:
        raw: Any = _Closed()
    elif hasattr(stream, "buffer"):
        stream.flush()
        raw = getattr(stream.buffer, "raw", stream.buffer)
    else:
        return stream, None
    whole = WholeStream(raw, optional)
    # What a terminal has no characters for is shown by number; a strict stream would end the command.
    errors = "backslashreplace" if stream is None or stream.errors == "strict" else stream.errors
    encoding = "utf-8" if stream is None else stream.encoding
    text = io.TextIOWrapper(cast("Any", whole), encoding, errors, line_buffering=True)
    return text, whole
