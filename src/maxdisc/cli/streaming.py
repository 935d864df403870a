"""``fit --stream``: a model from more rows than memory holds, in passes that survive a kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from maxdisc.checkpoints import CheckpointError, Journal, StreamEngine
from maxdisc.cli.failures import BadInputError
from maxdisc.cli.labelled import LabelledRows, Unlabelled, as_wide, labelled_part
from maxdisc.cli.speech import Speech
from maxdisc.matrices import is_sparse
from maxdisc.partitions import Job, Looks, PartitionedRows, Summand
from maxdisc.rows import ArrayRows, BatchRows, Rows
from maxdisc.sources import Dataset, Roles, SourceError, recut

#: What a batch may hold at most.
MOST_ROWS, MOST_BYTES = 2**16, 2**23
#: So many batches are looked through for words before what was found is added up.
SEGMENT = 32
#: More labels than this are names or numbers of rows.
MOST_CLASSES = 2**16
#: So many files are named one by one by a checkpoint.
MOST_FILES = 1000


@dataclass(frozen=True, eq=False)
class Seen:
    """What the first pass finds beside words; that of two parts adds.

    Parameters
    ----------
    labels : list of str
        Each label, sorted.
    n_rows, n_unlabelled : int
        How many rows there are, and how many of them have no label.
    unlabelled : str
        Where the first of those is.
    width : int
        How many columns a sparse matrix must have.
    least : float
        The least value in it, or 0.
    """

    labels: list[str]
    n_rows: int
    n_unlabelled: int
    unlabelled: str
    width: int
    least: float

    def __add__(self, other: Seen) -> Seen:
        return Seen(
            sorted({*self.labels, *other.labels}),
            self.n_rows + other.n_rows,
            self.n_unlabelled + other.n_unlabelled,
            self.unlabelled or other.unlabelled,
            max(self.width, other.width),
            min(self.least, other.least),
        )

    def __len__(self) -> int:
        return self.n_rows - self.n_unlabelled

    @property
    def y(self) -> npt.NDArray[np.str_]:
        """Each class once."""
        return np.array(self.labels, dtype=np.str_)


class Streaming:
    """A fit that reads its rows several times, and holds a batch of them at a time.

    Parameters
    ----------
    dataset : Dataset
        The rows.
    roles : Roles
        Which columns are what.
    settings : dict
        All that the model depends on beside the rows; ``classifier`` and ``words`` are parameters of the
        classifier and of the vectorizer.
    skip_unlabelled : bool
        Leave out rows without a label.
    speech : Speech
        Where progress and notes go.
    checkpoint : Path, optional
        A folder for checkpoints.
    resume : bool
        Go on from there.
    every : float
        Seconds between checkpoints.
    """

    def __init__(
        self,
        dataset: Dataset,
        roles: Roles,
        settings: dict[str, dict[str, Any]],
        skip_unlabelled: bool,
        speech: Speech,
        checkpoint: Path | None,
        resume: bool,
        every: float,
    ) -> None:
        once = [place.name for place in dataset.places if place.once]
        if once:
            raise BadInputError(
                f"{once[0]} can be read only once, and --stream reads several times: write it to a file."
            )
        self.dataset, self.roles, self.settings = dataset, roles, settings
        self.skip_unlabelled, self.speech = skip_unlabelled, speech
        self.checkpoint, self.passes = checkpoint, 0
        self.files = _files(dataset)
        self.seen: Seen | None = None
        self.vectorizer: Any = None
        if roles.text is not None:
            from maxdisc.text import TermFrequencyVectorizer

            self.vectorizer = TermFrequencyVectorizer(**settings["words"])
        with self._resumable(begun=False):
            self.journal = Journal(checkpoint, self._about(), resume, every, kinds=(Seen,))

    def _about(self) -> dict[str, str]:
        """What the sums depend on, in words."""
        given = {
            "the version of maxdisc": version("maxdisc"),
            "the column of labels": self.roles.label,
            "the column of text": self.roles.text or "none",
            "the list of features": _digest(list(self.roles.features)),
            "the handling of rows without a label": "to skip them"
            if self.skip_unlabelled
            else "to refuse them",
            "the encoding": self.dataset.encoding,
        }
        for name, value in chain.from_iterable(part.items() for part in self.settings.values()):
            written = json.dumps(value)
            given[f"--{name.replace('_', '-')}"] = written if len(written) <= 60 else _digest(value)
        return given | self.files

    # ------------------------------------------------------------------ the two parts of a fit

    def look(self) -> Seen:
        """The first pass: labels, and the words of documents."""
        with self._resumable():
            seen, *terms = self.journal.added(self._looks)
        assert isinstance(seen, Seen)
        unlabelled = Unlabelled(self.roles.label, self.skip_unlabelled)
        unlabelled.count, unlabelled.first = seen.n_unlabelled, seen.unlabelled
        unlabelled.settle(self.dataset.name, seen.n_rows, self.speech)
        if self.vectorizer is not None:
            self.vectorizer.fit_totals(terms[0])
        self.seen = seen
        return seen

    def fitted(self) -> Any:
        """The passes that follow, and the model they make."""
        from maxdisc import MaxDiscClassifier

        assert self.seen is not None
        classes, features = self.seen.y, list(self.roles.features)
        rows: Rows = PartitionedRows(self, self._rows_of, len(classes), self._look_of(self.seen))
        if self.settings["classifier"]["structure"] == "joint":
            rows = BatchRows(self._arrays, len(classes), self.roles.features)
        classifier = MaxDiscClassifier(**self.settings["classifier"])
        with self._resumable():
            classifier.fit_rows(rows, classes)
        if self.vectorizer is None:
            if features:
                classifier.feature_names_in_ = np.array(features, dtype=object)
            return classifier
        from sklearn.pipeline import Pipeline

        return Pipeline([("vectorizer", self.vectorizer), ("classifier", classifier)])

    def finish(self) -> None:
        """The model is written: nothing is left to go on from."""
        self.journal.clear()

    # ------------------------------------------------------------------ rows

    def added(self, job: Job[Summand]) -> list[Summand]:
        """Run a job on every batch, one after the other: this is an engine of one process."""

        def located(part: LabelledRows) -> list[Summand]:
            with part.located():
                return job(part)

        return StreamEngine(self._batches, self.journal).added(located)

    def _batches(self, done: int) -> Iterator[LabelledRows]:
        """A pass over the rows that have a label, without those of the first batches."""
        for part, _ in self._passed(done):
            yield part

    def _passed(self, done: int) -> Iterator[tuple[LabelledRows, Unlabelled]]:
        """A pass, with what is known of rows without a label so far."""
        self._require_unchanged()
        self.passes += 1
        roles, unlabelled, n_rows = self.roles, Unlabelled(self.roles.label, self.skip_unlabelled), 0
        columns = [roles.label, *([roles.text] if roles.text else roles.features)]
        task = "reading words and labels" if self.seen is None else f"fitting, pass {self.passes}"
        with self.speech.progress(task, self.dataset.total_bytes) as tell:
            runs = recut(self.dataset.batches(columns), MOST_ROWS, MOST_BYTES)
            for run in islice(runs, done, None):
                parts = [labelled_part(piece, unlabelled, roles.text, roles.features) for piece in run]
                n_rows += sum(map(len, run))
                tell(n_rows, self.dataset.done_bytes)
                yield LabelledRows.joined(parts), unlabelled
        self._require_unchanged()

    def _looks(self, done: int) -> Generator[tuple[int, list[Any]], None, None]:
        """What the first pass adds up, some batches at a time."""
        passed = self._passed(done)
        before = 0
        for first in passed:
            segment = _Segment(chain([first], islice(passed, SEGMENT - 1)))
            if self.vectorizer is not None:
                terms = [self.vectorizer.totals(segment.documents())]
            else:
                terms = []
                for _ in segment.parts():
                    pass
            yield segment.count, [segment.seen(before), *terms]
            before = segment.n_unlabelled

    def _rows_of(self, part: LabelledRows) -> ArrayRows:
        assert self.seen is not None
        classes = self.seen.y
        codes = np.searchsorted(classes, part.y)
        if not (classes[np.minimum(codes, len(classes) - 1)] == part.y).all():
            raise BadInputError(f"{self.dataset.name} has changed while it was read: there are new labels.")
        X = part.X
        if self.vectorizer is not None:
            X = self.vectorizer.transform(X)
        elif is_sparse(X):
            X = as_wide(X, self.seen.width)
        else:
            # Missing cells are NaN there.
            X = np.column_stack([column.to_numpy() for column in X.columns])
        return ArrayRows(X, codes, len(classes), names=self.roles.features or None)

    def _arrays(self) -> Iterator[tuple[Any, npt.NDArray[Any]]]:
        """A pass for joint densities, which ask for sums in the middle of others: these are not kept."""
        for part in self._batches(0):
            with part.located():
                rows = self._rows_of(part)
            yield rows.X, rows.labels

    def _look_of(self, seen: Seen) -> Looks:
        if self.vectorizer is None and self.roles.features:
            return Looks(np.zeros((1, len(self.roles.features))), len(seen))
        width = seen.width if self.vectorizer is None else len(self.vectorizer.terms_)
        return Looks(sp.csr_array(([seen.least], ([0], [0])), shape=(1, width)), len(seen))

    # ------------------------------------------------------------------ what may happen meanwhile

    def _require_unchanged(self) -> None:
        now = _files(self.dataset)
        changed = [name for name, size in self.files.items() if now.get(name) != size]
        if changed:
            raise SourceError(f"{changed[0]} has changed while it was read: begin again.")

    @contextmanager
    def _resumable(self, begun: bool = True) -> Iterator[None]:
        """Whoever is stopped is told how to go on."""
        again = f"the same command with --resume goes on from {self.checkpoint}"
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped: {again}." if self.checkpoint else "stopped.") from None
        except CheckpointError as error:
            raise BadInputError(f"{str(error)[:-1]}: {again}." if begun else str(error)) from None


class _Segment:
    """Some batches of the first pass, looked at while they pass by."""

    def __init__(self, passed: Iterator[tuple[LabelledRows, Unlabelled]]) -> None:
        self._passed = passed
        self.count = self.n_labelled = self.n_unlabelled = self.width = 0
        self.least, self.where = 0.0, ""
        self.labels: set[str] = set()

    def parts(self) -> Iterator[LabelledRows]:
        for part, unlabelled in self._passed:
            self.count += 1
            self.n_labelled += len(part)
            self.labels.update(np.unique(part.y).tolist())
            if len(self.labels) > MOST_CLASSES:
                raise BadInputError(
                    f"column {unlabelled.column!r} has more than {MOST_CLASSES:,} different labels: name the "
                    "column of classes with --label."
                )
            if is_sparse(part.X):
                self.width = max(self.width, part.X.shape[1])
                self.least = min(self.least, float(part.X.data.min(initial=0.0)))
            self.n_unlabelled, self.where = unlabelled.count, unlabelled.first
            yield part

    def documents(self) -> Iterator[str]:
        for part in self.parts():
            yield from part.X

    def seen(self, before: int) -> Seen:
        """All of it; ``before`` so many rows without a label came before."""
        without = self.n_unlabelled - before
        n_rows = self.n_labelled + without
        return Seen(
            sorted(self.labels), n_rows, without, self.where if without else "", self.width, self.least
        )


def _files(dataset: Dataset) -> dict[str, str]:
    """The size and the time of every file, in words."""
    found: dict[str, str] = {}
    rest = hashlib.sha256()
    for path in chain.from_iterable(_below(place.path) for place in dataset.places if place.path is not None):
        status = path.stat()
        told = f"{status.st_size} bytes of {datetime.fromtimestamp(status.st_mtime, UTC).isoformat()}"
        if len(found) < MOST_FILES:
            found[str(path.absolute())] = told
        else:
            rest.update(
                f"{path.absolute()}\0{status.st_size}\0{status.st_mtime_ns}\n".encode(errors="replace")
            )
    return found | {"the other files": rest.hexdigest()[:16]}


def _below(path: Path) -> Sequence[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def _digest(value: Any) -> str:
    return f"that of {hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]}"
