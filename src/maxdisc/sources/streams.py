"""Bytes of a file or of standard input: decompressed, as UTF-8, with what is wrong said in one line."""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import lzma
import shutil
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any, BinaryIO, cast

from maxdisc.sources.places import Place, SourceError

#: About so many bytes make one batch; a row may not be longer.
BATCH_BYTES = 2**23
HEAD_BYTES = 2**16

_OPENERS: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": lambda raw: gzip.GzipFile(fileobj=raw),
    b"BZh": bz2.BZ2File,
    b"\xfd7zXZ\x00": lzma.LZMAFile,
}


class Stream:
    """The bytes of one place, and how far they have been read.

    Parameters
    ----------
    place : Place
        A file or a stream, not a folder.
    encoding : str
        Of the text; anything but UTF-8 is recoded to it.
    """

    def __init__(self, place: Place, encoding: str) -> None:
        self.name = place.name
        self._copy: IO[bytes] | None = None
        raw = cast(BinaryIO, sys.stdin.buffer if place.path is None else open(place.path, "rb"))  # noqa: SIM115
        self._raw = raw if isinstance(raw, io.BufferedReader) else io.BufferedReader(cast(Any, raw))
        self.bytes: io.BufferedReader = self._decompressed()
        self.compressed = self.bytes is not self._raw
        if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig", "ascii"):
            self.bytes = io.BufferedReader(_Recoded(self.bytes, encoding), HEAD_BYTES)

    def _decompressed(self) -> io.BufferedReader:
        head = self._raw.peek(8)
        for magic, opener in _OPENERS.items():
            if head.startswith(magic):
                return io.BufferedReader(opener(self._raw), HEAD_BYTES)
        return self._raw

    def head(self) -> bytes:
        """The first bytes, without taking them."""
        with self.trouble():
            return self.bytes.peek(HEAD_BYTES)

    def seekable(self) -> IO[bytes]:
        """The bytes as a file that can be read out of order; a stream is copied to disk first."""
        if self._raw.seekable() and not self.compressed:
            return self._raw
        # It goes when it is closed, together with the stream.
        self._copy = tempfile.TemporaryFile()
        with self.trouble():
            shutil.copyfileobj(self.bytes, self._copy)
        self._copy.seek(0)
        return self._copy

    def position(self) -> int:
        """How many bytes of the file have been read; 0 for a stream without positions."""
        try:
            return 0 if self._raw.closed else self._raw.tell()
        except OSError:
            return 0

    def close(self) -> None:
        """Close the file; standard input is left open."""
        if self._copy is not None:
            self._copy.close()
        if self._raw is not sys.stdin.buffer:
            self._raw.close()

    @contextmanager
    def trouble(self) -> Iterator[None]:
        """Broken compression or a wrong encoding, as one line."""
        try:
            yield
        except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
            raise SourceError(f"{self.name} is not completely readable: {error}") from None
        except UnicodeError as error:
            raise SourceError(f"{self.name}: {error}; say another --encoding.") from None


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
    """Raise ``SourceError`` for an encoding that Python does not know."""
    try:
        codecs.lookup(encoding)
    except LookupError:
        raise SourceError(f"there is no encoding {encoding!r}: try utf-8, latin-1 or cp1252.") from None


def decoded(data: bytes, where: str) -> str:
    """Bytes as text, or a ``SourceError`` that names the byte.

    Examples
    --------
    >>> from maxdisc.sources.streams import decoded
    >>> decoded("café".encode("latin-1"), "menu.csv row 2")
    Traceback (most recent call last):
        ...
    maxdisc.sources.places.SourceError: menu.csv row 2: byte 0xe9 is not UTF-8: try --encoding latin-1.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        other = "utf-16" if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "latin-1"
        raise SourceError(
            f"{where}: byte 0x{data[error.start]:02x} is not UTF-8: try --encoding {other}."
        ) from None


def line_blocks(stream: Stream) -> Iterator[list[bytes]]:
    """The lines of a stream, in lists of about ``BATCH_BYTES``; line ends are kept."""
    while True:
        with stream.trouble():
            lines = stream.bytes.readlines(BATCH_BYTES)
        if not lines:
            return
        yield lines
