"""``fit --stream``: a model from more rows than memory holds, in passes that survive a kill."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError
from maxdisc.cli.labelled import LabelledRows, Unlabelled, labelled_part
from maxdisc.engines.checkpoints import CheckpointError, Journal
from maxdisc.engines.labelled_stream import LabelledStream, Seen
from maxdisc.files import Dataset, Roles, SourceError, recut
from maxdisc.numerics.switches import batch_size
from maxdisc.rows.column_families import takes_columns_of_frames

#: What a batch may hold at most.
MOST_ROWS, MOST_BYTES = 2**16, 2**23
#: So many files are named one by one by a checkpoint.
MOST_FILES = 1000

#: Options that are not called as the parameters are.
_OPTIONS = {"cv": "--folds", "ngram_range": "--ngrams"}


class Streaming:
    """Fit in several passes over the rows, one batch in memory at a time, with optional checkpoints."""

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
        for place in dataset.places:
            if place.format == "folder" and checkpoint and _is_below(checkpoint, place.path):
                raise BadInputError(
                    f"{checkpoint} is among the documents of {place.name}: name another folder."
                )
        self.dataset, self.roles, self.settings = dataset, roles, settings
        self.skip_unlabelled, self.speech = skip_unlabelled, speech
        self.checkpoint, self.passes = checkpoint, 0
        self.files = _files(dataset)
        words = None if roles.text is None else TermFrequencyVectorizer(**settings["words"])
        with self._resumable(begun=False):
            journal = Journal(checkpoint, self._about(), resume, every)
        names = list(roles.features) or (dataset.matrix_names if roles.text is None else None)
        self.stream = LabelledStream(self._batches, words, journal, names)

    def _about(self) -> dict[str, str]:
        """Return what the sums depend on, in words."""
        given = {
            "the version of maxdisc": version("maxdisc"),
            "the column of labels": self.roles.label,
            "the column of text": self.roles.text or "none",
            "the list of features": _digest(list(self.roles.features)),
            "the list of categories": _digest([self.roles.categories, self.roles.truths]),
            "what is done with rows without a label": "to skip" if self.skip_unlabelled else "to refuse",
            "the encoding": self.dataset.encoding,
            "the format": ", ".join(sorted(set(self.dataset.formats.values()))),
        }
        chosen = {"--layer": self.dataset.layer, "--sheet": self.dataset.sheet}
        given |= {flag: value for flag, value in chosen.items() if value is not None}
        if self.roles.readings:
            given["how columns are read"] = _digest([[f, r.stored()] for f, r in self.roles.readings.items()])
        for name, value in chain.from_iterable(part.items() for part in self.settings.values()):
            written = json.dumps(value)
            given[_OPTIONS.get(name, f"--{name.replace('_', '-')}")] = (
                written if len(written) <= 60 else _digest(value)
            )
        return given | self.files

    @property
    def _has_column_families(self) -> bool:
        """Whether each column of a table has a family of its own."""
        given = self.settings["classifier"]
        return given["structure"] != "joint" and takes_columns_of_frames(
            given["family"], None, given["missing"]
        )

    def look(self) -> Seen:
        """Run the first pass: labels, and the words of documents or the contents of columns."""
        with self._resumable():
            seen = self.stream.look()
        unlabelled = Unlabelled(self.roles.label, self.skip_unlabelled)
        unlabelled.count = seen.left_out
        unlabelled.settle(self.dataset.name, seen.n_rows + seen.left_out, self.speech)
        return seen

    def fit(self) -> Any:
        """Run the passes that follow, and return the model."""
        with self._resumable():
            classifier = self.stream.fit(MaxDiscClassifier(**self.settings["classifier"]))
        if self.stream.vectorizer is None:
            return classifier
        from sklearn.pipeline import Pipeline

        return Pipeline([("vectorizer", self.stream.vectorizer), ("classifier", classifier)])

    def finish(self) -> None:
        """Remove the checkpoint, after the model was written."""
        self.stream.journal.clear()

    def _batches(self, done: int) -> Iterator[LabelledRows]:
        """Yield a pass over the rows that have a label, without those of the first batches."""
        self._require_unchanged()
        self.passes += 1
        roles, unlabelled, n_rows = self.roles, Unlabelled(self.roles.label, self.skip_unlabelled), 0
        columns = [roles.label, *([roles.text] if roles.text else roles.features)]
        with self.speech.progress(f"reading, pass {self.passes}", self.dataset.total_bytes) as tell:
            runs = recut(self.dataset.batches(columns), batch_size(MOST_ROWS), MOST_BYTES)
            for run in islice(runs, done, None):
                given = (unlabelled, roles.text, roles.features, roles.categories, roles.truths)
                part = LabelledRows.joined([labelled_part(piece, *given) for piece in run])
                if unlabelled.count and not self.skip_unlabelled:
                    raise BadInputError(
                        f"{unlabelled.first} has no label in column {roles.label!r}: leave such rows "
                        "out with --skip-unlabelled."
                    )
                if roles.text is None and roles.features and not self._has_column_families:
                    # Missing cells are NaN there.
                    X = np.column_stack([column.to_numpy() for column in part.X.columns])
                    part = replace(part, X=X)
                n_rows += sum(map(len, run))
                tell(n_rows, self.dataset.done_bytes)
                yield part
        self._require_unchanged()

    # ------------------------------------------------------------------ what may happen meanwhile

    def _require_unchanged(self) -> None:
        now = _files(self.dataset)
        changed = [name for name, size in self.files.items() if now.get(name) != size]
        if changed:
            raise SourceError(f"{changed[0]} has changed while it was read: begin again.")

    @contextmanager
    def _resumable(self, begun: bool = True) -> Iterator[None]:
        """Print how to resume if the fit is stopped."""
        again = f"the same command with --resume goes on from {self.checkpoint}"
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(f"stopped: {again}." if self.checkpoint else "stopped.") from None
        except CheckpointError as error:
            raise BadInputError(f"{str(error)[:-1]}: {again}." if begun else str(error)) from None


def _files(dataset: Dataset) -> dict[str, str]:
    """Return the size and the time of every file, in words."""
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


def _is_below(path: Path, folder: Path | None) -> bool:
    return folder is not None and path.resolve().is_relative_to(folder.resolve())


def _below(path: Path) -> Sequence[Path]:
    return sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def _digest(value: Any) -> str:
    return f"that of {hashlib.sha256(json.dumps(value, default=str).encode()).hexdigest()[:16]}"
