"""``fit --engine spark``: every file is read by one task of Spark, as it would be read here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.adapters.spark.columns import Piece
from maxdisc.adapters.spark.engine import FrameEngine
from maxdisc.adapters.spark.fitting import fit_pieces
from maxdisc.adapters.spark.jobs import Facts
from maxdisc.adapters.spark.session import session
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.cli.console import Speech
from maxdisc.cli.failures import BadInputError
from maxdisc.cli.labelled import Unlabelled, require_short
from maxdisc.files import Dataset, Roles
from maxdisc.words.vectorizer import TermFrequencyVectorizer


@dataclass(frozen=True, eq=False)
class RowsElsewhere:
    """Summary of rows that stay with Spark."""

    y: npt.NDArray[np.str_]  # (C,)
    number: int

    def __len__(self) -> int:
        return self.number


def fit_on_spark(
    dataset: Dataset,
    roles: Roles,
    learning: dict[str, Any],
    words: dict[str, Any],
    skip_unlabelled: bool,
    master: str,
    speech: Speech,
) -> tuple[Any, RowsElsewhere]:
    """Fit a model to files that all Spark workers can read; return it with a summary of the rows."""
    if any(place.once for place in dataset.places):
        raise BadInputError(f"{dataset.name} can be read only once, and not by workers: write it to a file.")
    # Workers run elsewhere; messages still call files as the user did.
    places = [replace(place, path=Path(os.path.abspath(str(place.path)))) for place in dataset.places]
    seen: list[Facts] = []

    def classes_of(facts: Facts) -> npt.NDArray[np.str_]:
        seen.append(facts)
        unlabelled = Unlabelled(roles.label, skip_unlabelled)
        unlabelled.count, unlabelled.first = facts.unlabelled, facts.first_unlabelled
        unlabelled.settle(dataset.name, facts.unlabelled + facts.n_rows, speech)
        return np.array(sorted(facts.labels), dtype=np.str_)

    names = list(roles.features) or None
    classifier = MaxDiscClassifier(**learning)
    vectorizer = None if roles.text is None else TermFrequencyVectorizer(**words)
    read = partial(_pieces, places, dataset.options, roles)
    with session(master) as spark, speech.progress(f"fitting {dataset.name} on {master}"):
        engine = FrameEngine(spark.range(0, len(places), 1, len(places)), read, len(places))
        model = fit_pieces(engine, classifier, vectorizer, classes_of, names)
    if names is not None:
        classifier.feature_names_in_ = np.array(names, dtype=object)
    # What the model file remembers of the data; here only the first file has been opened.
    first = dataset.formats[dataset.places[0].name]
    dataset.formats.update({place.name: place.format or first for place in places})
    return model, RowsElsewhere(np.array(sorted(seen[0].labels), dtype=np.str_), seen[0].n_rows)


def _pieces(
    places: list[Any], options: dict[str, Any], roles: Roles, batches: Iterator[Any]
) -> Iterator[Piece]:
    """Yield the rows of the files whose numbers come in batches."""
    for place in (places[number] for batch in batches for number in batch["id"].to_pylist()):
        dataset = Dataset(
            [str(place.path)],
            format=place.format,
            text_column=roles.text,
            label_column=roles.label,
            **options,
        )
        dataset.places = [place]
        for batch in dataset.batches(roles.columns):
            unlabelled = Unlabelled(roles.label, True)
            y, kept = unlabelled.sorted_out(batch)
            part = batch if kept.all() else batch.rows(kept)
            require_short(y[kept], roles.label, part)
            X: Any = part.texts(roles.text) if roles.text else part.matrix
            if X is None:
                X = np.column_stack([column.to_numpy() for column in part.numbers(roles.features).columns])
            n_dense = 0 if roles.text or part.matrix is not None else len(part)
            origin = (batch.source, batch.first_row + np.flatnonzero(kept))
            yield Piece(X, y[kept], None, n_dense, unlabelled.count, unlabelled.first, origin)
