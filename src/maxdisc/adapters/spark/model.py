"""The fitted model of ``pyspark.ml``: a lazy transform, and saved folders with a model file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
from pyspark.ml.classification import ProbabilisticClassificationModel, _ProbabilisticClassifierParams
from pyspark.ml.functions import array_to_vector
from pyspark.ml.linalg import DenseVector, Vector, Vectors, VectorUDT
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.param.shared import HasWeightCol
from pyspark.ml.util import (
    DefaultParamsReader,
    DefaultParamsWriter,
    MLReadable,
    MLReader,
    MLWritable,
    MLWriter,
)
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, NumericType, StringType

from maxdisc.adapters.spark.columns import features_of
from maxdisc.inspection.model_view import ModelView
from maxdisc.model_file.persistence import from_bytes, to_bytes
from maxdisc.numerics.matrices import Floats, is_sparse

#: A cell of Parquet holds this much of a model file, which may be larger than a cell can be.
_CELL = 2**25
_PREDICTED = "raw array<double>, probability array<double>, prediction double"
_VECTOR = {
    "type": pa.int8(),
    "size": pa.int32(),
    "indices": pa.list_(pa.int32()),
    "values": pa.list_(pa.float64()),
}


class TextOrFeatures(_ProbabilisticClassifierParams, HasWeightCol):
    """The columns that an estimator and its model name."""

    textCol: Param[str] = Param(
        Params._dummy(),
        "textCol",
        "column of documents; if given, their words are the features, and featuresCol is not looked at.",
        TypeConverters.toString,
    )

    def getTextCol(self) -> str | None:
        """Return the column of documents, or None."""
        return self.getOrDefault(self.textCol) if self.isDefined(self.textCol) else None

    def input_of(self, dataset: DataFrame) -> tuple[str, Column]:
        """Return the name of the column of features or documents, and how it is passed to Python.

        Raises ``ValueError`` for a column that is missing, or of a type that is neither.
        """
        text = self.getTextCol()
        name = self.getFeaturesCol() if text is None else text
        kind = type_of(dataset, name)
        if text is not None:
            if not isinstance(kind, StringType):
                raise ValueError(f"column {name!r} holds {kind.simpleString()}: documents must be strings.")
            return name, sf.col(f"`{name}`")
        if isinstance(kind, VectorUDT):
            return name, sf.unwrap_udt(sf.col(f"`{name}`"))
        if isinstance(kind, ArrayType) and isinstance(kind.elementType, NumericType):
            return name, sf.col(f"`{name}`").cast("array<double>")
        raise ValueError(
            f"column {name!r} holds {kind.simpleString()}: features must be vectors (see VectorAssembler) or "
            "arrays of numbers; for documents set textCol."
        )


def type_of(dataset: DataFrame, name: str) -> Any:
    """Return the type of a column; raise ``ValueError`` for an unknown column."""
    found = [field.dataType for field in dataset.schema.fields if field.name == name]
    if len(found) != 1:
        has = "has no" if not found else "has more than one"
        raise ValueError(f"the data {has} column {name!r}; its columns are {', '.join(dataset.columns)}.")
    return found[0]


class SparkMaxDiscClassifierModel(
    ProbabilisticClassificationModel,
    TextOrFeatures,
    MLWritable,
    MLReadable,
):
    """A model that Spark applies, fitted by :class:`SparkMaxDiscClassifier`.

    ``prediction`` is the index of the most probable label in :attr:`labels`, as a double: for numeric labels
    the label itself. ``probability`` and ``rawPrediction``, its log, are vectors with that index. The
    metadata of the prediction column has the labels: ``IndexToString(inputCol="prediction", outputCol=...)``
    converts it to text.

    Parameters
    ----------
    estimator : MaxDiscClassifier or Pipeline
        The fitted model, which works without Spark and can be saved with :func:`maxdisc.save`.
    labels : list of str, optional
        Labels of the indices, if the classes are indices and their labels are known.

    Examples
    --------
    >>> from pyspark.ml.linalg import Vectors
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.adapters.spark import SparkMaxDiscClassifierModel
    >>> local = MaxDiscClassifier(n_features="all", evidence="raw", smoothing=1.0)
    >>> local = local.fit([[1.0, 2.0], [3.0, 2.5], [1.5, 2.0], [3.5, 2.0]], ["no", "yes", "no", "yes"])
    >>> model = SparkMaxDiscClassifierModel(local)
    >>> model.labels, model.predict(Vectors.dense(3.0, 2.5))
    (['no', 'yes'], 1.0)
    """

    __module__ = "maxdisc.adapters.spark"  # which saved folders name

    def __init__(self, estimator: Any = None, labels: list[str] | None = None) -> None:
        super().__init__()
        self.estimator = estimator
        self._labels = labels

    @property
    def _indices(self) -> npt.NDArray[np.intp]:
        """Positions of the classes in the vectors; some indices may not be among the training labels."""
        classes = ModelView.of(self.estimator).classifier.classes_
        return np.arange(len(classes)) if classes.dtype.kind in "OU" else classes.astype(np.intp)

    @property
    def labels(self) -> list[str]:
        """Labels of the indices."""
        if self._labels is not None:
            return self._labels
        classes = ModelView.of(self.estimator).classifier.classes_
        words = classes.dtype.kind in "OU"
        return [str(c) for c in classes] if words else [str(index) for index in range(self.numClasses)]

    @property
    def numClasses(self) -> int:
        """The length of the vectors of probabilities."""
        return max(int(self._indices[-1]) + 1, len(self._labels or ()))

    @property
    def numFeatures(self) -> int:
        """The number of features, or of known words."""
        return int(ModelView.of(self.estimator).classifier.n_features_in_)

    def setTextCol(self, value: str) -> SparkMaxDiscClassifierModel:
        """Name the column of documents."""
        return self._set(textCol=value)

    # ------------------------------------------------------------------ prediction

    def predictRaw(self, value: Vector | str) -> DenseVector:
        """Return the log probability of each label, for one vector or document."""
        return Vectors.dense(self._of_one(value)[0][0])

    def predictProbability(self, value: Vector | str) -> DenseVector:
        """Return the probability of each label, for one vector or document."""
        return Vectors.dense(np.exp(self._of_one(value)[0][0]))

    def predict(self, value: Vector | str) -> float:
        """Return the index of the label of one vector or document."""
        return float(self._of_one(value)[1][0])

    def _of_one(self, value: Vector | str) -> tuple[Floats, Floats]:
        X = [value] if isinstance(value, str) else value.toArray()[None]
        return _predicted_by(self.estimator, X, **self._how)

    @property
    def _how(self) -> dict[str, Any]:
        """How probabilities of classes become vectors and predictions."""
        thresholds = self.getOrDefault(self.thresholds) if self.isDefined(self.thresholds) else None
        if thresholds is not None and len(thresholds) != self.numClasses:
            raise ValueError(f"thresholds must be {self.numClasses} numbers, got {len(thresholds)}.")
        return {"indices": self._indices, "width": self.numClasses, "thresholds": thresholds}

    def _transform(self, dataset: DataFrame) -> DataFrame:
        name, column = self.input_of(dataset)
        named = {
            "raw": self.getRawPredictionCol(),
            "probability": self.getProbabilityCol(),
            "prediction": self.getPredictionCol(),
        }
        for output in filter(None, named.values()):
            if output in dataset.columns:
                raise ValueError(f"the data has a column {output!r} already: drop it, or name another.")
        predict = partial(
            _predict_frames,
            name,
            # Moments are for further learning: workers do without.
            to_bytes(self.estimator, moments=False),
            self._how,
        )
        of_vectors = isinstance(type_of(dataset, name), VectorUDT)
        given = column if of_vectors else sf.struct(column.alias("values"))
        found = f"maxdisc_{self.uid}"
        out = dataset.withColumn(found, sf.pandas_udf(_annotated(predict), _PREDICTED)(given))
        for part, output in named.items():
            if output:
                value = sf.col(f"`{found}`.{part}")
                if part != "prediction":
                    out = out.withColumn(output, array_to_vector(value))
                else:
                    attribute = {"type": "nominal", "name": output, "vals": self.labels}
                    out = out.withColumn(output, value.alias(output, metadata={"ml_attr": attribute}))
        return out.drop(found)

    # ------------------------------------------------------------------ keeping

    def write(self) -> MLWriter:
        """Return a writer of this model: ``model.write().overwrite().save(path)``."""
        return _ModelWriter(self)

    @classmethod
    def read(cls) -> MLReader[SparkMaxDiscClassifierModel]:
        """Return a reader of what :meth:`write` wrote."""
        return _ModelReader()


class _ModelWriter(MLWriter):
    def __init__(self, instance: SparkMaxDiscClassifierModel) -> None:
        super().__init__()
        self.instance = instance

    def saveImpl(self, path: str) -> None:
        model, spark = self.instance, self.sparkSession
        content = to_bytes(model.estimator, moments=True)  # a saved model may go on learning
        cells = [
            (number, bytearray(content[start : start + _CELL]))
            for number, start in enumerate(range(0, len(content), _CELL))
        ]
        frame = spark.createDataFrame(cells, "number int, content binary")
        frame.coalesce(1).write.parquet(f"{path}/data")
        # Last: a folder without it is not a model.
        DefaultParamsWriter.saveMetadata(model, path, spark, {"labels": model._labels})


class _ModelReader(MLReader):
    def load(self, path: str) -> SparkMaxDiscClassifierModel:
        spark = self.sparkSession
        metadata = DefaultParamsReader.loadMetadata(path, spark)
        due = f"{SparkMaxDiscClassifierModel.__module__}.{SparkMaxDiscClassifierModel.__name__}"
        if metadata["class"] != due:
            raise ValueError(f"{path} holds a {metadata['class']}, not a {due}.")
        rows = spark.read.parquet(f"{path}/data").orderBy("number").collect()
        content = b"".join(row.content for row in rows)
        model = SparkMaxDiscClassifierModel(from_bytes(content, path), metadata["labels"])
        model._resetUid(metadata["uid"])
        DefaultParamsReader.getAndSetParams(model, metadata)
        return model


def _annotated(predict: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function with the types by which Spark knows what it takes."""

    def predicted(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        return predict(frames)

    predicted.__annotations__ = {"frames": Iterator[pd.DataFrame], "return": Iterator[pd.DataFrame]}
    return predicted


def _predict_frames(
    name: str, content: bytes, how: dict[str, Any], frames: Iterator[pd.DataFrame]
) -> Iterator[pd.DataFrame]:
    estimator = from_bytes(content)
    for frame in frames:
        X, _ = features_of(_arrow(frame), name)
        if is_sparse(X) and np.isnan(X.data).any():
            X = X.toarray()  # dense vectors among sparse ones: there a NaN is a missing cell
        raw, prediction = _predicted_by(estimator, X, **how)
        columns = {"raw": list(raw), "probability": list(np.exp(raw)), "prediction": prediction}
        yield pd.DataFrame(columns)


def _arrow(frame: pd.DataFrame) -> pa.Array:
    """Columns that Spark handed over in pandas, as they were in Arrow."""
    if list(frame.columns) != list(_VECTOR):
        return pa.array(frame["values"], from_pandas=True)
    if frame["type"].isna().any():
        return pa.nulls(len(frame))
    arrays = [pa.array(frame[name], kind, from_pandas=True) for name, kind in _VECTOR.items()]
    return pa.StructArray.from_arrays(arrays, list(_VECTOR))


def _predicted_by(
    estimator: Any, X: Any, indices: npt.NDArray[np.intp], width: int, thresholds: list[float] | None
) -> tuple[Floats, Floats]:
    """Log probabilities of all indices, shape (n, width), and the index that is predicted, shape (n,)."""
    known = estimator.predict_log_proba(X)
    raw = np.full((len(known), width), -np.inf)
    raw[:, indices] = known
    by = raw
    if thresholds is not None:
        with np.errstate(divide="ignore"):
            by = raw - np.log(thresholds)
    return raw, by.argmax(axis=1).astype(np.float64)
