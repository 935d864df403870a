"""A file is written to the end or not at all."""

from __future__ import annotations

import os
import stat
import subprocess
import sys

import pytest

from maxdisc.model_file.atomic_writes import atomic_write

posix = pytest.mark.skipif(os.name != "posix", reason="permissions, links and pipes are those of POSIX")


def only(folder, *names):
    return sorted(os.listdir(folder)) == sorted(names)


def test_text_and_bytes(tmp_path):
    with atomic_write(tmp_path / "a", "w") as file:
        file.write("häßlich\n")
    with atomic_write(str(tmp_path / "b")) as file:
        file.write(b"\x00\r\n")
    assert (tmp_path / "a").read_bytes() == "häßlich\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\x00\r\n"
    assert only(tmp_path, "a", "b")


def test_closing_early_does_no_harm(tmp_path):
    with atomic_write(tmp_path / "a") as file:
        file.write(b"x")
        file.close()
    assert (tmp_path / "a").read_bytes() == b"x"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, OSError])
@pytest.mark.parametrize("before", [None, b"old"])
def test_what_goes_wrong_leaves_things_as_they_were(tmp_path, error, before):
    path = tmp_path / "a"
    if before is not None:
        path.write_bytes(before)
    with pytest.raises(error), atomic_write(path) as file:  # noqa: PT012
        file.write(b"new")
        raise error
    assert path.exists() == (before is not None)
    assert before is None or path.read_bytes() == before
    assert only(tmp_path, *(["a"] if before else []))


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_disk_that_fails_at_the_end_leaves_the_old_file(tmp_path, monkeypatch, call):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError, match="No space left"), atomic_write(path) as file:
        file.write(b"new")
    assert path.read_bytes() == b"old"
    assert only(tmp_path, "a")


def test_the_new_file_is_on_the_disk_before_it_takes_the_old_ones_place(tmp_path, monkeypatch):
    done = []
    fsync, replace = os.fsync, os.replace
    monkeypatch.setattr(os, "fsync", lambda f: (done.append(os.fstat(f).st_size), fsync(f)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append("replace"), replace(a, b)))
    with atomic_write(tmp_path / "a") as file:
        file.write(b"12345")
    assert done[:2] == [5, "replace"]
    assert len(done) == (3 if os.name == "posix" else 2)  # the folder


@posix
def test_permissions_are_the_usual_ones_or_those_of_the_old_file(tmp_path):
    old = os.umask(0o027)
    try:
        with atomic_write(tmp_path / "new"):
            pass
        (tmp_path / "old").write_bytes(b"")
        os.chmod(tmp_path / "old", 0o400)
        with atomic_write(tmp_path / "old") as file:
            assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o400  # before anything is in it
    finally:
        os.umask(old)
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o640
    assert stat.S_IMODE(os.stat(tmp_path / "old").st_mode) == 0o400


@posix
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_a_link(tmp_path, exists):
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "real"
    if exists:
        target.write_bytes(b"old")
    (tmp_path / "link").symlink_to(target)
    with atomic_write(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink()
    assert target.read_bytes() == b"new"


@posix
def test_folders_pipes_and_missing_folders_are_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path, words in [
        (tmp_path, "a folder"),
        (tmp_path / "pipe", "a device or a pipe"),
        (tmp_path / "none" / "a", "no such folder"),
    ]:
        with pytest.raises(OSError, match=words), atomic_write(path):
            pass
    assert only(tmp_path, "pipe")


def test_the_longest_name_can_be_written(tmp_path):
    with atomic_write(tmp_path / ("x" * 255)) as file:
        file.write(b"1")
    assert only(tmp_path, "x" * 255)


@posix
def test_a_full_disk(tmp_path):
    """A limit on the size of files stands for the full disk; it fails in the middle of a write."""
    code = """
import resource, sys
from maxdisc.model_file.atomic_writes import atomic_write
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    with atomic_write(sys.argv[1]) as file:
        file.write(bytes(10_000))
except OSError as error:
    print(error.strerror)
"""
    path = tmp_path / "a"
    path.write_bytes(b"old")
    run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "File too large"
    assert path.read_bytes() == b"old"
    assert only(tmp_path, "a")
