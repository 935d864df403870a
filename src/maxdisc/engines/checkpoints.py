"""Checkpoints of sums over a stream, written when a sum is complete and at intervals before.

Everything learnt from a stream is a sequence of sums over its batches: labels and words, moments, samples,
sweeps. The sequence depends only on the data and the settings. So a resumed run reads the complete sums,
continues the incomplete one, and ends with the same model to the last bit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.decisions.sweep import Sweep
from maxdisc.model_file.atomic_writes import atomic_write
from maxdisc.model_file.container import Container, ModelFileError, write
from maxdisc.model_file.values import decoded_strings, encoded_strings
from maxdisc.moments.class_moments import ClassMoments
from maxdisc.moments.products import ClassProducts
from maxdisc.numerics.matrices import is_sparse, require_indices
from maxdisc.rows.partitions import Job, Looks, Summand
from maxdisc.rows.sampling import RowSample
from maxdisc.selection.held_out import HeldOut
from maxdisc.words.vocabulary import TermTotals

#: Types that sums may contain besides numbers, strings and arrays. Files name them and contain no code.
KINDS: tuple[type, ...] = (ClassMoments, ClassProducts, HeldOut, Looks, RowSample, Sweep, TermTotals)
#: Minimum number of seconds between two checkpoints.
EVERY = 30.0

_FORMAT = 1
_STEPS = "step-*.checkpoint"
#: Maps the number of finished batches to the parts of the others, with their numbers of batches.
Parts = Callable[[int], Generator[tuple[int, list[Any]], None, None]]


class CheckpointError(ValueError):
    """A checkpoint that cannot be used or written; always one line."""


class Journal:
    """Checkpoints of the sums of a run, in a folder.

    Parameters
    ----------
    folder : path-like or None
        The folder, which is created if necessary. None writes no checkpoints.
    about : dict of str to str
        Description of the data and settings that the sums depend on. Checkpoints with another description are
        refused.
    resume : bool
        Whether to continue from the checkpoint in the folder. Otherwise the folder must not have one.
    every : float
        Seconds between checkpoints.

    Examples
    --------
    >>> import tempfile
    >>> from maxdisc.engines import Journal
    >>> def parts(done):
    ...     for batch in [1.0, 2.0, 4.0][done:]:
    ...         yield 1, [batch]
    >>> folder = tempfile.TemporaryDirectory()
    >>> Journal(folder.name, {"data": "three numbers"}).added(parts)
    [7.0]
    >>> Journal(folder.name, {"data": "three numbers"}, resume=True).added(lambda done: 1 / 0)
    [7.0]
    >>> folder.cleanup()
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        about: Mapping[str, str],
        resume: bool = False,
        every: float = EVERY,
    ) -> None:
        self.folder = None if folder is None else Path(folder)
        self.about = dict(about)
        self.every = every
        self._kinds = {kind.__name__: kind for kind in KINDS}
        self._step, self._running = 0, False
        if self.folder is not None:
            self._open(self.folder, resume)

    def _open(self, folder: Path, resume: bool) -> None:
        if folder.exists() and not folder.is_dir():
            raise CheckpointError(f"{folder} is a file: name a folder for the checkpoint.")
        held = sorted(folder.glob(_STEPS)) if folder.is_dir() else []
        if held and not resume:
            raise CheckpointError(f"{folder} holds the checkpoint of a run: resume that, or remove it.")
        for path in held:
            self._document(path)
        if folder.is_dir():
            _sweep_up(folder)

    def allow(self, kind: type) -> None:
        """Allow this dataclass in sums."""
        self._kinds[kind.__name__] = kind

    def added(self, parts: Parts) -> list[Any]:
        """Return the sum of all parts, continuing from the checkpoint.

        Parameters
        ----------
        parts : callable
            Function of the number of finished batches; returns a generator of the remaining parts: the
            number of batches of a part, and a list of its summands. An empty list adds nothing.

        Returns
        -------
        list
            The sum. Raises ``ValueError`` if no part has summands.
        """
        if self._running and self.folder is not None:
            # Read from its file, the outer sum would not ask for the inner one: others would change places.
            raise RuntimeError("sums of a journal come one after the other, not one inside another.")
        self._step, self._running = self._step + 1, True
        try:
            return self._added(parts)
        finally:
            self._running = False

    def _added(self, parts: Parts) -> list[Any]:
        total, done, finished = self._read()
        if finished:
            return total
        written = time.monotonic()
        with closing(parts(done)) as rest:
            for count, part in rest:
                total, done = self._settled(_plus(total, part)), done + count
                if self.folder is not None and time.monotonic() - written >= self.every:
                    self._write(total, done, finished=False)
                    written = time.monotonic()
        if not total:
            raise ValueError("there are no rows.")
        if self.folder is not None:
            self._write(total, done, finished=True)
        return total

    def clear(self) -> None:
        """Remove the checkpoint, after the model was written."""
        if self.folder is None or not self.folder.is_dir():
            return
        for path in self.folder.glob(_STEPS):
            path.unlink(missing_ok=True)
        _sweep_up(self.folder)
        if not any(self.folder.iterdir()):
            self.folder.rmdir()

    # ------------------------------------------------------------------ files

    def _path(self) -> Path:
        assert self.folder is not None
        return self.folder / _STEPS.replace("*", f"{self._step:04d}")

    def _write(self, total: list[Any], done: int, finished: bool) -> None:
        tensors: dict[str, npt.NDArray[Any]] = {}
        document = {
            "format": _FORMAT,
            "checkpoint": {
                "about": self.about,
                "step": self._step,
                "batches": done,
                "finished": finished,
                "sums": self._encoded(total, tensors),
            },
        }
        path = self._path()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_write(path) as file:
                write(file, tensors, document)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise CheckpointError(
                f"no checkpoint could be written to {path.parent}: {reason}; what was there before still is."
            ) from None

    def _read(self) -> tuple[list[Any], int, bool]:
        """Return the stored sum, its number of batches, and whether it is complete."""
        if self.folder is None or not self._path().exists():
            return [], 0, False
        path = self._path()
        container, found = self._document(path)
        try:
            container.verify()
            if found["step"] != self._step:
                raise ValueError
            total = self._decoded(found["sums"], container)
            done, finished = found["batches"], found["finished"]
            if not (isinstance(total, list) and type(done) is int and done >= 0 and type(finished) is bool):
                raise ValueError
        except ModelFileError:
            raise CheckpointError(f"{path} is damaged: remove {self.folder}, and begin again.") from None
        except (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError):
            raise CheckpointError(f"{path} is not a checkpoint that this version reads.") from None
        return total, done, finished

    def _document(self, path: Path) -> tuple[Container, dict[str, Any]]:
        """Return a file of the folder; refuse one of other data or settings."""
        try:
            container = Container.open(path)
        except ModelFileError as error:
            raise CheckpointError(f"{path} is not a whole checkpoint: {error}") from None
        found = container.document.get("checkpoint")
        about = found.get("about") if isinstance(found, dict) else None
        if not isinstance(found, dict) or not isinstance(about, dict):
            raise CheckpointError(f"{path} is not a checkpoint.")
        for name in (*self.about, *(name for name in about if name not in self.about)):
            before, now = about.get(name, "not there"), self.about.get(name, "not there")
            if before != now:
                raise CheckpointError(
                    f"the checkpoint in {path.parent} is of another run: {name} was {before!s:.80}, and is "
                    f"{now:.80} now."
                )
        return container, found

    # ------------------------------------------------------------------ values

    def _settled(self, value: Any) -> Any:
        """Return the value as it would be read from a file, so that results do not depend on resuming."""
        tensors: dict[str, npt.NDArray[Any]] = {}
        return self._decoded(self._encoded(value, tensors), tensors)

    def _encoded(self, value: Any, tensors: dict[str, npt.NDArray[Any]]) -> Any:
        """Encode a value as JSON and arrays; a value that is not plain becomes a list with its kind."""

        def kept(array: npt.NDArray[Any]) -> list[Any]:
            name = f"t{len(tensors)}"
            tensors[name] = np.ascontiguousarray(array).reshape(-1)
            return [name, *array.shape]

        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, int | np.integer):
            return int(value)
        if isinstance(value, float | np.floating):
            # By name, as JSON has no infinities; in base 16, as no digit may be lost.
            return ["float", float(value).hex()]
        if isinstance(value, np.ndarray):
            return ["array", *kept(value)]
        if is_sparse(value):
            X = sp.csr_array(value)
            return ["sparse", [kept(X.data), kept(X.indices), kept(X.indptr)], *X.shape]
        if isinstance(value, list):
            if value and all(isinstance(item, str) for item in value):
                words = encoded_strings(value, "a checkpoint")
                return ["strings", kept(words["bytes"]), kept(words["offsets"])]
            return ["list", *(self._encoded(item, tensors) for item in value)]
        name = type(value).__name__
        if self._kinds.get(name) is not type(value) or not is_dataclass(value):
            raise TypeError(f"a checkpoint cannot hold {type(value)}.")
        return [name, *(self._encoded(getattr(value, f.name), tensors) for f in fields(value))]

    def _decoded(self, node: Any, tensors: Container | Mapping[str, npt.NDArray[Any]]) -> Any:
        """Return the value that :meth:`_encoded` wrote."""

        def array(named: list[Any]) -> npt.NDArray[Any]:
            name, *shape = named
            if any(type(length) is not int or length < 0 for length in shape):
                raise ValueError
            # A copy: the file is replaced while the array is in use.
            found = tensors[name] if isinstance(tensors, Mapping) else np.array(tensors.tensor(name))
            return found.reshape(shape)

        if not isinstance(node, list):
            return node
        kind, *content = node
        if kind == "float":
            return float.fromhex(content[0])
        if kind == "array":
            return array(content)
        if kind == "sparse":
            parts, n_rows, n_columns = content
            X = sp.csr_array(tuple(map(array, parts)), shape=(int(n_rows), int(n_columns)))
            if not isinstance(tensors, Mapping):
                require_indices(X)  # a wrong one would be followed out of bounds
            return X
        if kind == "strings":
            return decoded_strings(array(content[0]), array(content[1]), "sums")
        values = [self._decoded(item, tensors) for item in content]
        return values if kind == "list" else self._kinds[kind](*values)


def _plus(total: list[Any], part: list[Any]) -> list[Any]:
    """Return the sum of both, entry by entry, so that no more than one entry is held three times."""
    if not total or not part:
        return total or part
    if len(total) != len(part):
        raise ValueError(f"a part of {len(part)} sums does not add to {len(total)}.")
    out: list[Any] = []
    while total:
        out.append(total.pop() + part.pop())
    return out[::-1]


def _sweep_up(folder: Path) -> None:
    """Remove temporary files of killed writes."""
    for path in folder.glob(".maxdisc-*.tmp"):
        path.unlink(missing_ok=True)


@dataclass(frozen=True, eq=False)
class StreamEngine:
    """Batches of a stream as an :class:`maxdisc.rows.partitions.Engine`; sums go to a journal."""

    batches: Callable[[int], Iterator[Any]]
    journal: Journal

    def added(self, job: Job[Summand]) -> list[Summand]:
        """Run a job on every batch, and add up what it returns."""

        def parts(done: int) -> Generator[tuple[int, list[Any]], None, None]:
            for batch in self.batches(done):
                yield 1, job(batch)

        return self.journal.added(parts)
