"""The container format of model files: safetensors with a JSON document and a checksum."""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import reprlib
import stat
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt
import safetensors.numpy

from maxdisc.numerics.threads import in_threads

#: The newest format that this version reads; a file is written in the oldest that can hold it.
FORMAT = 5
#: The header's entry that holds the document, and the tensor that holds the checksum.
DOCUMENT, CHECKSUM = "maxdisc", "checksum"
#: The document's entry that lists deflated tensors, and the first format that has it.
DEFLATED, DEFLATED_SINCE = "deflated", 4
#: Deflated tensors inflate to at most this many times the file's size, plus a constant: no small file asks
#: for much memory.
MOST_INFLATION, FREE_INFLATION = 64, 2**20
#: Tensors with fewer bytes, or whose deflated size exceeds this share, are not deflated, but mapped.
_LEAST_DEFLATED, _LEAST_GAIN = 1024, 0.75
_LEVEL = 6
PIECE = 2**20
#: Names and numbers are tensors: what is left for the header is small. Text of 16 MiB may parse to 0.5 GB.
LONGEST_HEADER = 2**24

_DIGEST_BYTES = 32
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "|b1",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "|i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "|u1",
}  # fmt: skip


class ModelFileError(ValueError):
    """A model that cannot be saved, or an invalid model file; the message is one line.

    Examples
    --------
    >>> from maxdisc import ModelFileError, load
    >>> try:
    ...     load("no-such-file.maxdisc")
    ... except ModelFileError as error:
    ...     print(error)
    no-such-file.maxdisc: No such file or directory
    """


class Entry(NamedTuple):
    """Type and shape of a tensor, and where it lies in the file, in bytes."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    begin: int
    end: int
    is_deflated: bool = False

    @property
    def n_bytes(self) -> int:
        """The size of the tensor in memory."""
        return math.prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Container:
    """Model file with a valid header; its checksum is not verified yet."""

    buffer: mmap.mmap | bytes | bytearray
    document: dict[str, Any]
    entries: dict[str, Entry]
    checksum: Entry

    @classmethod
    def of(cls, buffer: mmap.mmap | bytes | bytearray) -> Container:
        """Read the header; raise :class:`ModelFileError` unless it accounts for every byte."""
        start = 8 + int.from_bytes(buffer[:8], "little")
        if len(buffer) < 8 or not 8 < start <= min(len(buffer), 8 + LONGEST_HEADER):
            raise ModelFileError("this is not a model file of maxdisc, or not all of it.")
        header = strict_json(bytes(buffer[8:start]), "its header")
        about = header.pop("__metadata__", None)
        if not isinstance(about, dict) or not isinstance(about.get(DOCUMENT), str):
            raise ModelFileError("this is not a model file of maxdisc: its header does not say so.")
        document = strict_json(about[DOCUMENT].encode(errors="replace"), "its document")
        require_readable(document.get("format"))
        entries = {name: _entry(name, header[name], start) for name in header}
        _require_all_of(entries.values(), start, len(buffer))
        if document["format"] >= DEFLATED_SINCE:
            entries |= _deflated_entries(document.pop(DEFLATED, {}), entries, len(buffer))
        checksum = entries.pop(CHECKSUM, None)
        if len(about) > 1 or checksum is None or checksum.end - checksum.begin != _DIGEST_BYTES:
            raise ModelFileError("it has no checksum, or other entries in its header than a model file has.")
        return cls(buffer, document, entries, checksum)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Container:
        """Map a file into memory; what is never looked at is never read.

        The pages are ours alone: code that writes into an array changes neither the file nor other models.
        """
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                raise ModelFileError("this is not a file.")
            with open(path, "rb") as file:
                empty = os.fstat(file.fileno()).st_size == 0
                return cls.of(b"" if empty else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        except OSError as error:
            raise ModelFileError(error.strerror or str(error)) from None

    def digest(self) -> bytes:
        """SHA-256 of the CRC-32s of the file, mebibyte by mebibyte, with zeros where the checksum is.

        Damage changes a CRC-32, for certain if it is short and else but for once in 2^32. Threads compute it
        many times as fast as one could a SHA-256. Neither would stop a forger, who can compute both.
        """
        whole = memoryview(self.buffer)
        begin, end = self.checksum.begin, self.checksum.end

        def crc(start: int) -> bytes:
            piece: Any = whole[start : start + PIECE]
            if start < end and begin < start + PIECE:
                piece = bytearray(piece)
                for place in range(max(begin - start, 0), min(end - start, len(piece))):
                    piece[place] = 0
            return zlib.crc32(piece).to_bytes(4, "little")

        return hashlib.sha256(b"".join(in_threads(crc, range(0, len(whole), PIECE)))).digest()

    def verify(self) -> None:
        """Read all of the file once; raise :class:`ModelFileError` if a bit is not as it was written."""
        if self.digest() != self.buffer[self.checksum.begin : self.checksum.end]:
            raise ModelFileError("its checksum does not fit: the file is damaged. Copy or save it again.")

    def tensors(self) -> dict[str, npt.NDArray[Any]]:
        """Views of the file, and deflated tensors, by name."""
        return {name: self.tensor(name) for name in self.entries}

    def tensor(self, name: str) -> npt.NDArray[Any]:
        """Return a view of the file, or a deflated tensor."""
        entry = self.entries[name]
        if entry.is_deflated:
            return _inflate(self.buffer[entry.begin : entry.end], entry, name)
        view = np.ndarray(entry.shape, entry.dtype, self.buffer, entry.begin)
        return view.astype(entry.dtype.newbyteorder("="), copy=False)


def write(
    file: IO[bytes],
    tensors: Mapping[str, npt.NDArray[Any]],
    document: dict[str, Any],
    *,
    deflate: bool = False,
) -> None:
    """Write a model file, with tensors deflated where that is worth it; equal models give equal bytes."""
    plain = {name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}
    if deflate:
        plain, document = _with_deflated(plain, document)
    try:
        text = json.dumps(document, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ModelFileError(f"what is to be saved is not plain JSON: {error}.") from None
    plain[CHECKSUM] = np.zeros(_DIGEST_BYTES, dtype=np.uint8)
    packed = safetensors.numpy.save(plain, metadata={DOCUMENT: text})
    if int.from_bytes(packed[:8], "little") > LONGEST_HEADER:
        raise ModelFileError(f"parameters and 'about' take more than {LONGEST_HEADER >> 20} MiB as text.")
    container = Container.of(packed)
    whole = memoryview(packed)
    file.write(whole[: container.checksum.begin])
    file.write(container.digest())
    file.write(whole[container.checksum.end :])


def _with_deflated(
    tensors: dict[str, npt.NDArray[Any]], document: dict[str, Any]
) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    """Return tensors, deflated where that is worth it, and a document that lists these."""
    large = [name for name, tensor in tensors.items() if tensor.nbytes >= _LEAST_DEFLATED]
    streams = dict(zip(large, in_threads(lambda name: _deflate(tensors[name]), large), strict=True))
    streams = {name: s for name, s in streams.items() if len(s) <= _LEAST_GAIN * tensors[name].nbytes}
    small = {name: np.frombuffer(stream, dtype=np.uint8) for name, stream in streams.items()}
    inflated = sum(tensors[name].nbytes for name in small)
    if inflated > MOST_INFLATION * sum(map(len, streams.values())) + FREE_INFLATION:
        # No reader would inflate so much: the tensors that shrink most stay as they are.
        small = {
            name: stream
            for name, stream in small.items()
            if tensors[name].nbytes <= MOST_INFLATION * stream.nbytes
        }
    if not small:
        return tensors, document
    names = {np.dtype(dtype): name for name, dtype in _DTYPES.items()}
    listed = {name: [names[tensors[name].dtype], list(tensors[name].shape)] for name in small}
    return tensors | small, {**document, "format": max(document["format"], DEFLATED_SINCE), DEFLATED: listed}


def _deflate(tensor: npt.NDArray[Any]) -> bytes:
    """Return a zlib stream; of integers, their differences, with bytes of equal significance together."""
    if tensor.dtype != np.int64 or tensor.ndim != 1:
        return zlib.compress(tensor.tobytes(), _LEVEL)
    steps = np.diff(tensor, prepend=0).astype("<i8")
    return zlib.compress(steps.view(np.uint8).reshape(-1, 8).T.tobytes(), _LEVEL)


def _inflate(stream: bytes | bytearray, entry: Entry, name: str) -> npt.NDArray[Any]:
    """Return the tensor of a zlib stream; raise :class:`ModelFileError` unless it has just these bytes."""
    inflater = zlib.decompressobj()
    try:
        content = bytearray(inflater.decompress(stream, entry.n_bytes + 1))
    except zlib.error:
        content = bytearray()
    if len(content) != entry.n_bytes or not inflater.eof or inflater.unused_data:
        raise ModelFileError(f"its deflated tensor {short(name)} does not inflate to what it says.")
    if entry.dtype == np.int64 and len(entry.shape) == 1:
        rows = np.frombuffer(content, dtype=np.uint8).reshape(8, -1).T
        return np.cumsum(np.ascontiguousarray(rows).view("<i8")[:, 0], dtype=np.int64)
    return (
        np.frombuffer(content, dtype=entry.dtype)
        .reshape(entry.shape)
        .astype(entry.dtype.newbyteorder("="), copy=False)
    )


def strict_json(text: bytes, what: str) -> dict[str, Any]:
    """Parse a JSON object strictly; raise :class:`ModelFileError` if it is invalid."""
    try:
        found = json.loads(
            text.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_number, parse_float=_number
        )
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ModelFileError(f"this is not a model file of maxdisc: {what} is not JSON.")
    return found


def require_readable(version: Any) -> None:
    """Raise :class:`ModelFileError` for a format that this version does not know."""
    if type(version) is not int or version < 1:
        raise ModelFileError("it does not say which format it has.")
    if version > FORMAT:
        raise ModelFileError(
            f"written by a newer maxdisc (format {version}); this one reads up to {FORMAT}: "
            "install at least the version that wrote it"
        )


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("a number is not finite")
    return value


def _entry(name: str, entry: Any, start: int) -> Entry:
    """Return what the header says of one tensor, in places of the file."""
    if isinstance(entry, dict) and entry.keys() == {"dtype", "shape", "data_offsets"}:
        dtype, shape, place = entry["dtype"], entry["shape"], entry["data_offsets"]
        if isinstance(dtype, str) and dtype in _DTYPES and _naturals(shape) and _naturals(place):
            kind = np.dtype(_DTYPES[dtype])
            fits = len(place) == 2 and math.prod(shape) * kind.itemsize == place[1] - place[0]
            aligned = fits and (start + place[0]) % kind.itemsize == 0
            if aligned and _is_shape(shape):
                return Entry(kind, tuple(shape), start + place[0], start + place[1])
    raise ModelFileError(f"its header is wrong about the tensor {short(name)}.")


def _deflated_entries(listed: Any, entries: Mapping[str, Entry], n_bytes: int) -> dict[str, Entry]:
    """Return the entries of deflated tensors, as they are once inflated."""
    found = {}
    for name, listing in listed.items() if isinstance(listed, dict) else [("", None)]:
        entry, pair = entries.get(name), listing if isinstance(listing, list) else []
        sound = (
            len(pair) == 2
            and isinstance(pair[0], str)
            and pair[0] in _DTYPES
            and _is_shape(pair[1])
            and name != CHECKSUM
        )
        if not sound or entry is None or entry.dtype != np.uint8 or len(entry.shape) != 1:
            raise ModelFileError(f"it is wrong about its deflated tensor {short(name)}.")
        dtype, shape = np.dtype(_DTYPES[pair[0]]), tuple(pair[1])
        found[name] = Entry(dtype, shape, entry.begin, entry.end, is_deflated=True)
    if sum(entry.n_bytes for entry in found.values()) > MOST_INFLATION * n_bytes + FREE_INFLATION:
        raise ModelFileError("its deflated tensors ask for far more memory than it has bytes.")
    return found


def _is_shape(shape: Any) -> bool:
    """Return whether a tensor may have this shape."""
    # An axis of 0 lets the others be anything; no honest file uses that.
    return _naturals(shape) and 0 < len(shape) <= 3 and (0 not in shape or len(shape) == 1)


def _naturals(values: Any) -> bool:
    return isinstance(values, list) and all(type(v) is int and v >= 0 for v in values)


def _require_all_of(entries: Iterable[Entry], start: int, end: int) -> None:
    """Raise :class:`ModelFileError` unless the tensors lie side by side and fill the file."""
    places = sorted((entry.begin, entry.end) for entry in entries)
    if [start, *(e for _, e in places)] != [*(b for b, _ in places), end]:
        raise ModelFileError("its tensors do not fill it: it is damaged, or not all of it is there.")


def short(value: Any) -> str:
    """Shorten a value from a file to one line for a message."""
    text = reprlib.repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
