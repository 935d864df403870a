"""Byte streams of files and standard input: decompressed, converted to UTF-8, with errors of one line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import pyarrow as pa

from maxdisc.files.places import Place, SourceError
from maxdisc.numerics.switches import batch_size

#: About how many bytes make one batch; a row may not be longer.
BATCH_BYTES = 2**23
#: ... of rows of about this many bytes.
ROW_BYTES = 64
HEAD_BYTES = 2**16


def batch_bytes() -> int:
    """Return about how many bytes make one batch."""
    return batch_size(BATCH_BYTES, unit=ROW_BYTES)


_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}


class Stream:
    """Bytes of one file or stream, with a count of those read; other encodings are converted to UTF-8."""

    def __init__(self, place: Place, encoding: str) -> None:
        self.name = place.name
        self._copy: IO[bytes] | None = None
        self._waiting: _Waiting | None = None
        self._raw = self._opened(place)
        self.bytes: io.BufferedReader = self._decompressed()
        self._content = self.bytes
        self.compressed = self.bytes is not self._raw
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig", "ascii"):
            self.bytes = io.BufferedReader(_Recoded(self.bytes, encoding), HEAD_BYTES)

    def _opened(self, place: Place) -> io.BufferedReader:
        if place.path is not None and not place.once:
            return open(place.path, "rb")
        file: Any = sys.stdin.buffer
        if place.path is not None:
            file = open(place.path, "rb", buffering=0)  # noqa: SIM115  # close() closes it
        try:
            number = file.fileno()
        except io.UnsupportedOperation:
            number = None
        if number is None or os.name != "posix":
            return file if isinstance(file, io.BufferedReader) else io.BufferedReader(file)
        self._waiting = _Waiting(file, number)
        return io.BufferedReader(self._waiting, HEAD_BYTES)

    def _decompressed(self) -> io.BufferedReader:
        head = self._raw.peek(8)
        for magic, opener in _OPENERS.items():
            if head.startswith(magic):
                return io.BufferedReader(opener(self._raw), HEAD_BYTES)
        return self._raw

    def magic(self) -> bytes:
        """Return the first bytes as they are in the file, without taking them: ask before :meth:`head`."""
        with self.trouble():
            return self._content.peek(HEAD_BYTES)

    def head(self) -> bytes:
        """Return the first bytes of the text, without taking them."""
        with self.trouble():
            return self.bytes.peek(HEAD_BYTES)

    def seekable(self) -> IO[bytes]:
        """Return the bytes as a file at its beginning, for any order; a stream is copied to disk first."""
        file = self._raw if self._raw.seekable() and not self.compressed else self._copy
        if file is not None:
            file.seek(0)
            return file
        # It goes when it is closed, together with the stream.
        self._copy = tempfile.TemporaryFile()  # noqa: SIM115  # it lives as long as the stream
        with self.trouble():
            shutil.copyfileobj(self._content, self._copy)
        self._copy.seek(0)
        return self._copy

    def position(self) -> int:
        """Return how many bytes of the file have been read; 0 for a stream without positions."""
        try:
            return 0 if self._raw.closed else self._raw.tell()
        except OSError:
            return 0

    def close(self) -> None:
        """Close the file; standard input is left open."""
        if self._copy is not None:
            self._copy.close()
        if self._waiting is not None:
            self._waiting.give_up()
        elif self._raw is not sys.stdin.buffer:
            self._raw.close()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Broken compression or a wrong encoding, as one line."""
        try:
            yield
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise SourceError(f"{self.name} is not completely readable: {error}") from None
        except OSError as error:
            if error.errno is not None:
                raise  # the disk, not the content
            raise SourceError(f"{self.name} is not completely readable: {error}") from None
        except UnicodeError as error:
            raise SourceError(f"{self.name}: {error}; say another --encoding.") from None


class StreamOfBytes(Stream):
    """UTF-8 bytes in memory, never decompressed."""

    def __init__(self, content: bytes, name: str) -> None:
        self.name = name
        self._copy, self._waiting = None, None
        self._raw = self.bytes = self._content = io.BufferedReader(io.BytesIO(content), HEAD_BYTES)
        self.compressed = False


class _Waiting(io.RawIOBase):
    """A stream that stops waiting for more after Ctrl-C, or when it is told to.

    pyarrow reads in a thread of its own, and until that has read something the main thread can neither be
    interrupted nor end. So the wait is for two things: more input, and a byte in a pipe that Python writes
    when a signal arrives.
    """

    def __init__(self, file: Any, number: int) -> None:
        self._file, self._number = file, number
        self._ended = False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._main = threading.current_thread() is threading.main_thread()
        if self._main:
            pa.enable_signal_handlers(False)  # its own look for Ctrl-C only once there is more
            self._before = signal.set_wakeup_fd(self._wake, warn_on_full_buffer=False)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._ended:
            ready, _, _ = select.select([self._number, self._woken], [], [])
            self._ended = self._woken in ready
        if self._ended:
            return 0
        data = os.read(self._number, len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def give_up(self) -> None:
        """From now on there is no more."""
        if self._ended and self._wake < 0:
            return
        if self._main:
            signal.set_wakeup_fd(self._before)
            pa.enable_signal_handlers(True)
        self._ended = True
        os.close(self._wake)
        self._wake = -1
        if self._file is not sys.stdin.buffer:
            self._file.close()


class _Recoded(io.RawIOBase):
    """Text of any encoding as bytes of UTF-8."""

    def __init__(self, stream: io.BufferedReader, encoding: str) -> None:
        self._text = io.TextIOWrapper(stream, encoding, newline="")
        self._left = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._left:
            self._left = self._text.read(HEAD_BYTES).encode("utf-8")
        n = min(len(buffer), len(self._left))
        buffer[:n], self._left = self._left[:n], self._left[n:]
        return n


def require_encoding(encoding: str) -> None:
    """Raise ``SourceError`` for an encoding that Python does not know, or that is not of text."""
    try:
        "".encode(encoding)
    except (LookupError, UnicodeError):
        raise SourceError(f"there is no encoding {encoding!r}: try utf-8, latin-1 or cp1252.") from None


def is_text(head: bytes) -> bool:
    """Return whether the beginning of a file may be text: UTF-8, but for a last character that is cut."""
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return False
    return b"\0" not in head


def decoded(data: bytes, where: str) -> str:
    """Return bytes as text; raise ``SourceError`` with the position of an invalid byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        other = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin-1"
        raise SourceError(
            f"{where}: byte 0x{data[error.start]:02x} is not UTF-8: try --encoding {other}."
        ) from None


def line_blocks(stream: Stream) -> Iterator[list[bytes]]:
    """Yield the lines of a stream, in lists of about :func:`batch_bytes`; line ends are kept."""
    while True:
        with stream.trouble():
            lines = stream.bytes.readlines(batch_bytes())
        if not lines:
            return
        yield lines
