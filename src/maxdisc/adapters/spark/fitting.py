"""From an engine of labelled pieces to a fitted model: what is looked up first, then ``fit_rows``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy.typing as npt
from sklearn.pipeline import Pipeline

from maxdisc.adapters.spark.engine import MOST_BYTES, FrameEngine
from maxdisc.adapters.spark.jobs import Facts, labelled_rows, survey, unchanged, vectorised
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.rows.partitions import PartitionedRows
from maxdisc.words.vectorizer import TermFrequencyVectorizer


def fit_pieces(
    engine: FrameEngine,
    classifier: MaxDiscClassifier,
    vectorizer: TermFrequencyVectorizer | None,
    classes_of: Callable[[Facts], npt.NDArray[Any]],
    names: npt.ArrayLike | None = None,
) -> Any:
    """Fit a classifier to the pieces of an engine, after a vectorizer if there is one."""
    if vectorizer is not None:
        facts, totals = engine.added(partial(survey, vectorizer=vectorizer))
        classes = classes_of(facts)
        vectorizer.fit_totals(totals)
        kept = engine.kept(partial(vectorised, vectorizer))
    else:
        kept = engine.kept(unchanged)
    try:
        if vectorizer is None:
            # Facts are few: no tree is needed.
            (facts,) = replace(kept, n_partitions=1).added(survey)
            classes = classes_of(facts)
        rows_of = partial(
            labelled_rows,
            classes=classes,
            sparse=vectorizer is not None or facts.sparse,
            width=facts.widths[1] if vectorizer is None else len(vectorizer.terms_),
            names=names,
        )
        known = replace(kept, n_partitions=len(facts.partitions))
        classifier.fit_rows(PartitionedRows(known, rows_of, len(classes), most_bytes=MOST_BYTES), classes)
    finally:
        kept.frame.unpersist()
    if vectorizer is None:
        return classifier
    return Pipeline([("vectorizer", vectorizer), ("classifier", classifier)])
