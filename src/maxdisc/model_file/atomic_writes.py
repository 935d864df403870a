"""Atomic file writes."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Literal


@contextmanager
def atomic_write(path: str | os.PathLike[str], mode: Literal["w", "wb"] = "wb") -> Iterator[IO[Any]]:
    """Open a file that replaces ``path`` atomically when it is complete.

    An exception, a full disk or Ctrl-C leaves the old file as it was. A killed process leaves the old file
    too, and a ``.maxdisc-*.tmp`` next to it. A symbolic link is followed; an existing file keeps its
    permissions.
    """
    target = Path(os.path.realpath(path))
    permissions = _replaceable(target)
    temporary = target.with_name(f".maxdisc-{secrets.token_hex(8)}.tmp")
    try:
        with _created(temporary, mode) as file:
            if permissions is not None:
                os.chmod(temporary, permissions)  # before there is anything to read
            yield file
        _to_disk(temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if os.name == "posix":  # elsewhere folders cannot be opened, and need not be
        _to_disk(target.parent)


def _replaceable(target: Path) -> int | None:
    """Return the permissions of the file that is there, or None; raise ``OSError`` for what is no file."""
    if not target.parent.is_dir():
        raise FileNotFoundError(errno.ENOENT, "there is no such folder", str(target.parent))
    try:
        found = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found):
        raise IsADirectoryError(errno.EISDIR, "this is a folder, not a file", str(target))
    if not stat.S_ISREG(found):
        raise OSError(errno.EINVAL, "this is a device or a pipe, not a file", str(target))
    return stat.S_IMODE(found)


def _created(path: Path, mode: Literal["w", "wb"]) -> IO[Any]:
    if mode == "wb":
        return open(path, "xb")
    return open(path, "x", encoding="utf-8", newline="")


def _to_disk(path: Path) -> None:
    """Wait until what was written is on the disk, through a handle of our own."""
    handle = os.open(path, os.O_RDONLY if os.name == "posix" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
