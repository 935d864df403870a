"""The estimator of ``pyspark.ml``: columns and settings in, a model out."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from pyspark.ml.classification import ProbabilisticClassifier
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.util import DefaultParamsReadable, DefaultParamsWritable
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import BooleanType, NumericType, StringType

from maxdisc.adapters.spark.columns import INPUT, LABEL, WEIGHT, read_pieces
from maxdisc.adapters.spark.engine import FrameEngine
from maxdisc.adapters.spark.fitting import fit_pieces
from maxdisc.adapters.spark.jobs import Facts
from maxdisc.adapters.spark.model import SparkMaxDiscClassifierModel, TextOrFeatures, type_of
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.words.vectorizer import TermFrequencyVectorizer

#: More labels than this are more likely names of rows.
MOST_LABELS = 2**16

# What pyspark.ml calls a parameter, and what the estimators of maxdisc do.
_LEARNING = {
    "family": "family",
    "divergence": "divergence",
    "nFeatures": "n_features",
    "structure": "structure",
    "evidence": "evidence",
    "smoothing": "smoothing",
    "redundancy": "redundancy",
    "numFolds": "cv",
    "rule": "rule",
    "prior": "prior",
}
_WORDS = {
    "tokenPattern": "token_pattern",
    "lowercase": "lowercase",
    "stopWords": "stop_words",
    "minCount": "min_count",
    "minDF": "min_df",
    "maxDF": "max_df",
    "maxFeatures": "max_features",
    "ngramRange": "ngram_range",
    "scale": "scale",
}


def _plain(value: Any) -> Any:
    """Return a number, a word or None as it is: what is saved with an estimator must be plain."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(item) for item in np.asarray(value).tolist()]
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"give a name, a number or a list of them, not {value!r:.60}.")


def _setting(name: str, doc: str) -> Param[Any]:
    return Param(Params._dummy(), name, doc, _plain)


class SparkMaxDiscClassifier(
    ProbabilisticClassifier,
    TextOrFeatures,
    DefaultParamsWritable,
    DefaultParamsReadable,
):
    r"""Estimator that fits a :class:`maxdisc.MaxDiscClassifier` to a Spark DataFrame.

    The model is that of the same rows in memory with ``cv="hash"`` and ``structure="independent"``, for any
    partitioning. Only sums are sent to the driver.

    Parameters
    ----------
    featuresCol : str, default="features"
        Vectors, sparse or dense, or arrays of numbers; NaN in dense ones, and null in arrays, is a missing
        cell. A column with vectors of both kinds is treated as the kind that takes less memory.
    labelCol : str, default="label"
        Indices 0, 1, 2, ... such as those of ``StringIndexer``, or text.
    textCol : str, optional
        Documents, instead of features; an additional pass learns the vocabulary.
    weightCol : str, optional
        Row weights.
    predictionCol, probabilityCol, rawPredictionCol : str
        Names of the model's output columns; an empty name leaves one out.
    thresholds : list of float, optional
        The prediction is the label with the largest ratio of probability to threshold.
    family, divergence, nFeatures, structure, evidence, smoothing, redundancy, rule, prior
        As for :class:`maxdisc.MaxDiscClassifier`, by name or number. ``evidence="refined"`` needs the rows in
        memory, and becomes "calibrated".
    numFolds : int, default=5
        Number of folds, by a hash of each row.
    tokenPattern, lowercase, stopWords, minCount, minDF, maxDF, maxFeatures, ngramRange, scale
        As for :class:`maxdisc.TermFrequencyVectorizer`.

    Examples
    --------
    >>> from maxdisc.adapters.spark import SparkMaxDiscClassifier
    >>> classifier = SparkMaxDiscClassifier(textCol="body", labelCol="topic", minDF=2)
    >>> classifier.getTextCol(), classifier.getOrDefault("nFeatures"), classifier.getOrDefault("minDF")
    ('body', 'auto', 2)
    """

    __module__ = "maxdisc.adapters.spark"  # which saved folders name

    family = _setting("family", "family of every feature's densities, or auto.")
    divergence = _setting("divergence", "what features are ranked by.")
    nFeatures = _setting("nFeatures", "how many features to keep: auto, all, a number or a share.")
    structure = _setting("structure", "auto (here: independent), independent or joint.")
    evidence = _setting("evidence", "calibrated or raw.")
    smoothing = _setting("smoothing", "pseudo-rows given to each class, or auto.")
    redundancy = _setting("redundancy", "how much less a feature counts that repeats others.")
    numFolds: Param[int] = Param(
        Params._dummy(), "numFolds", "number of folds by a hash of the row (>= 2).", TypeConverters.toInt
    )
    rule = _setting("rule", "best or one_se.")
    prior = _setting("prior", "class probabilities, by class; by default their shares of the weight.")
    tokenPattern = _setting("tokenPattern", "regular expression of a word.")
    lowercase = _setting("lowercase", "whether upper and lower case are the same.")
    stopWords = _setting("stopWords", "english, a list of words to pass over, or None.")
    minCount = _setting("minCount", "keep words that occur at least so often.")
    minDF = _setting("minDF", "smallest number (or share) of documents a kept word occurs in.")
    maxDF = _setting("maxDF", "largest number (or share) of documents a kept word occurs in.")
    maxFeatures = _setting("maxFeatures", "number of most frequent words to keep, or None for all.")
    ngramRange = _setting("ngramRange", "the fewest and the most words in a row that are one term.")
    scale = _setting("scale", "of word counts: length, log, frequency or None.")

    def __init__(self, **settings: Any) -> None:
        super().__init__()
        learning, words = MaxDiscClassifier().get_params(), TermFrequencyVectorizer().get_params()
        self._setDefault(
            **{name: _plain(learning[theirs]) for name, theirs in _LEARNING.items()},
            **{name: _plain(words[theirs]) for name, theirs in _WORDS.items()},
        )
        self.setParams(**settings)

    def setParams(self, **settings: Any) -> SparkMaxDiscClassifier:
        """Set any parameters, by name."""
        for name in settings:
            if not self.hasParam(name):
                raise TypeError(f"there is no parameter {name!r}: see explainParams().")
        return self._set(**settings)

    def setTextCol(self, value: str) -> SparkMaxDiscClassifier:
        """Name the column of documents."""
        return self._set(textCol=value)

    def setWeightCol(self, value: str) -> SparkMaxDiscClassifier:
        """Name the column of row weights."""
        return self._set(weightCol=value)

    def _fit(self, dataset: DataFrame) -> SparkMaxDiscClassifierModel:
        name, column = self.input_of(dataset)
        label = self.getLabelCol()
        kind = type_of(dataset, label)
        if not isinstance(kind, StringType | NumericType | BooleanType):
            raise ValueError(f"column {label!r} holds {kind.simpleString()}: labels are numbers or text.")
        words = isinstance(kind, StringType)
        labels = sf.col(f"`{label}`")
        columns = [column.alias(INPUT), (labels if words else labels.cast("double")).alias(LABEL)]
        if weight := self._weight_column(dataset):
            columns.append(sf.col(f"`{weight}`").cast("double").alias(WEIGHT))
        estimator = fit_pieces(
            FrameEngine(dataset.select(*columns), partial(read_pieces, name)),
            MaxDiscClassifier(**self._given(_LEARNING)),
            TermFrequencyVectorizer(**self._given(_WORDS)) if self.getTextCol() else None,
            partial(_classes, label, words),
        )
        model = SparkMaxDiscClassifierModel(estimator, None if words else _meanings(dataset, label))
        return self._copyValues(model)

    def _weight_column(self, dataset: DataFrame) -> str | None:
        name = self.getOrDefault(self.weightCol) if self.isDefined(self.weightCol) else None
        if name:
            kind = type_of(dataset, name)
            if not isinstance(kind, NumericType):
                raise ValueError(f"column {name!r} holds {kind.simpleString()}: row weights are numbers.")
        return name

    def _given(self, names: dict[str, str]) -> dict[str, Any]:
        given = {theirs: self.getOrDefault(name) for name, theirs in names.items()}
        if isinstance(given.get("ngram_range"), list):
            given["ngram_range"] = tuple(given["ngram_range"])
        return given


def _classes(column: str, words: bool, facts: Facts) -> npt.NDArray[Any]:
    """Return the labels in order; raise ``ValueError`` if they are invalid."""
    if facts.unlabelled:
        raise ValueError(
            f"{facts.unlabelled:,} of {facts.unlabelled + facts.n_rows:,} rows have no label in column "
            f"{column!r}: leave them out with dataset.dropna(subset=[{column!r}])."
        )
    if len(facts.labels) > MOST_LABELS:
        raise ValueError(f"column {column!r} has {len(facts.labels):,} labels: does it name rows?")
    if facts.widths[0] != facts.widths[1]:
        raise ValueError(f"some vectors have {facts.widths[0]} numbers, others {facts.widths[1]}.")
    odd = next((x for x in facts.labels if not words and not _is_index(x)), None)
    if odd is not None:
        raise ValueError(
            f"column {column!r} has the label {odd:g}: numbers must be indices 0, 1, 2, ...; StringIndexer "
            "makes them from any labels."
        )
    return np.array(sorted(facts.labels), dtype=np.str_ if words else np.float64)


def _is_index(label: float) -> bool:
    return label >= 0 and label.is_integer() and label < MOST_LABELS


def _meanings(dataset: DataFrame, label: str) -> list[str] | None:
    """Return the labels that an indexer wrote with their indices."""
    found = dataset.schema[label].metadata.get("ml_attr", {}).get("vals")
    return None if found is None else [str(value) for value in found]
