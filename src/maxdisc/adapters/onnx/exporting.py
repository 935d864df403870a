"""A fitted model as one ONNX graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import skl2onnx
from skl2onnx._parse import _parse_sklearn, _parse_sklearn_classifier, _parse_sklearn_simple_model
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxdisc.adapters.onnx.counts import LOCALE
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.discriminative import DiscriminativeMaxEnt
from maxdisc.fitting.documents import as_pipeline
from maxdisc.rows.frames import WORD, cells_of, column_names, is_frame
from maxdisc.search import MaxDiscSearchCV
from maxdisc.words.vectorizer import TermFrequencyVectorizer

#: What the one input of a graph is called.
INPUT = "X"
#: A graph is one protocol buffer, which cannot be larger.
LARGEST = 2**31 - 1


def to_onnx(
    model: Any,
    X: Any = None,
    *,
    dtype: npt.DTypeLike = np.float64,
    options: Mapping[str, Any] | None = None,
    locale: str = LOCALE,
    target_opset: int | Mapping[str, int] | None = None,
) -> Any:
    """Return a fitted model, or a pipeline that ends in one, as an ONNX graph.

    The graph computes in double precision for any input, and returns labels of shape (n,) and probabilities
    of shape (n, C). Invalid rows, such as those with a negative count, end a run with an error that names the
    node ``maxdisc_cannot_score_a_row...``. After importing :mod:`maxdisc.adapters.onnx`, ``skl2onnx.to_onnx``
    and ``skl2onnx.convert_sklearn`` support the estimators.

    Parameters
    ----------
    model : MaxDiscClassifier, DiscriminativeMaxEnt, MaxDiscSearchCV or Pipeline
        Fitted.
    X : array, frame or sequence of str, optional
        Some rows, for the type of the input: doubles, single precision, integers or documents; a frame has an
        input for each column, by name. By default the type follows from the model.
    dtype : {float64, float32}, default=float64
        Type of numbers in the input if X is not given.
    options : dict, optional
        Options of the classifier, as in skl2onnx: ``"zipmap"`` (True: a dictionary for each row; "columns":
        an output for each class), ``"raw_scores"`` (scores instead of probabilities), ``"nocl"`` (labels by
        number), ``"output_class_labels"``. All are off.
    locale : str, default="C.UTF-8"
        Locale for lower-casing of documents. It must exist on the machine that runs the graph: Linux has the
        default, macOS and Windows may need "en_US.UTF-8" and "en-US".
    target_opset : int or dict, optional
        Version of the operators, as in skl2onnx.

    Returns
    -------
    onnx.ModelProto
        ``SerializeToString()`` gives the bytes that runtimes load. Raises ``ValueError`` for unsupported
        models.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.adapters.onnx import to_onnx
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> graph = to_onnx(MaxDiscClassifier().fit(X, y)).graph
    >>> [value.name for value in (*graph.input, *graph.output)]
    ['X', 'label', 'probabilities']
    """
    check_is_fitted(model)
    if isinstance(model, MaxDiscSearchCV):
        model = model.best_estimator_
    model = as_pipeline(model)
    _require_classifier_last(model)
    types = _types_by_model(model, np.dtype(dtype)) if X is None else _types_by_rows(X)
    if any(not name for name, _ in types):
        raise ValueError("an input of a graph needs a name, and a column has an empty one: rename it.")
    made = skl2onnx.convert_sklearn(
        model,
        name="maxdisc",
        initial_types=types,
        target_opset=target_opset,
        custom_parsers=_parsers({"zipmap": False, **(options or {})}, {"locale": locale}),
    )
    _name_inputs(made, [name for name, _ in types])
    if made.ByteSize() > LARGEST:
        raise ValueError(
            f"the graph would have {made.ByteSize():,} bytes, and ONNX has at most {LARGEST:,}: keep fewer "
            "features with n_features=."
        )
    made.doc_string = ""
    return made


def _parsers(of_classifier: dict[str, Any], of_words: dict[str, Any]) -> dict[type, Any]:
    """Return what hands the options on.

    skl2onnx's own way looks at every value that a model holds, all words of a vocabulary included.
    """

    def classifier(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        scope.add_options(id(model), of_classifier)
        return _parse_sklearn_classifier(scope, model, inputs, custom_parsers)

    def search(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        return _parse_sklearn(scope, model.best_estimator_, inputs, custom_parsers=custom_parsers)

    def words(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        scope.add_options(id(model), of_words)
        return _parse_sklearn_simple_model(scope, model, inputs, custom_parsers)

    return {
        MaxDiscClassifier: classifier,
        DiscriminativeMaxEnt: classifier,
        MaxDiscSearchCV: search,
        TermFrequencyVectorizer: words,
    }


def _require_classifier_last(model: Any) -> None:
    """Raise ``ValueError`` for a classifier that stands where features are chosen: converters see no such."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    if any(isinstance(step, MaxDiscClassifier | MaxDiscSearchCV) for step in steps[:-1]):
        raise ValueError(
            "a MaxDiscClassifier that only chooses features for another model cannot be exported to ONNX: "
            "stand sklearn.feature_selection.SelectFromModel around it, prefit and threshold=1e-300."
        )
    if not isinstance(steps[-1], MaxDiscClassifier | MaxDiscSearchCV | DiscriminativeMaxEnt):
        raise ValueError(
            f"to_onnx takes classifiers of maxdisc, or a pipeline that ends in one, got "
            f"{type(steps[-1]).__name__}: skl2onnx.to_onnx takes other estimators."
        )


def _name_inputs(made: Any, names: list[str]) -> None:
    """Call the inputs of a graph what the columns are called; skl2onnx has made them identifiers."""
    graph = made.graph
    used = {name for node in graph.node for name in (*node.input, *node.output)}
    used |= {value.name for value in (*graph.input, *graph.output)}
    changed = {
        value.name: name
        for value, name in zip(graph.input, names, strict=True)
        if value.name != name and name not in used
    }
    for value in graph.input:
        value.name = changed.get(value.name, value.name)
    for node in graph.node:
        for place, name in enumerate(node.input):
            node.input[place] = changed.get(name, name)


def _types_by_model(model: Any, dtype: np.dtype[Any]) -> list[tuple[str, Any]]:
    """Return what a model was fitted on: documents, columns of several kinds, or a matrix of numbers."""
    first = model.steps[0][1] if isinstance(model, Pipeline) else model
    if isinstance(first, TermFrequencyVectorizer):
        return [(INPUT, StringTensorType([None]))]
    number = {"float64": DoubleTensorType, "float32": FloatTensorType}.get(dtype.name)
    if number is None:
        raise ValueError(f"dtype must be float64 or float32, got {dtype.name}.")
    n_columns = getattr(first, "n_features_in_", None)
    if n_columns is None:
        raise ValueError(f"give rows X: {type(first).__name__} does not tell what its input is.")
    schema = getattr(first, "_schema", None)
    if schema is None or not (schema.kinds == WORD).any():
        return [(INPUT, number([None, int(n_columns)]))]
    names = getattr(first, "feature_names_in_", [f"x{column}" for column in range(n_columns)])
    kinds = [StringTensorType if kind == WORD else number for kind in schema.kinds]
    return [(str(name), kind([None, 1])) for name, kind in zip(names, kinds, strict=True)]


def _types_by_rows(X: Any) -> list[tuple[str, Any]]:
    """Return what some rows are."""
    if is_frame(X):
        return _types_by_frame(X)
    if isinstance(X, str):
        raise ValueError("X must be rows, or a list of documents, got a single string.")
    array = X if hasattr(X, "dtype") and hasattr(X, "shape") else np.asarray(X)
    letter = array.dtype.kind
    if letter in "OU" and array.ndim == 1:
        return [(INPUT, StringTensorType([None]))]
    if array.ndim != 2:
        raise ValueError(f"X must be a table with rows and columns, got {array.ndim} dimensions.")
    kinds = {"float32": FloatTensorType, "bool": BooleanTensorType}
    kind = Int64TensorType if letter in "iu" else kinds.get(array.dtype.name, DoubleTensorType)
    if letter not in "OU":
        return [(INPUT, kind([None, int(array.shape[1])]))]
    words = cells_of(array).kinds == WORD
    return [
        (f"x{column}", (StringTensorType if word else DoubleTensorType)([None, 1]))
        for column, word in enumerate(words.tolist())
    ]


def _types_by_frame(X: Any) -> list[tuple[str, Any]]:
    """Return an input for each column: single precision where all of a frame's numbers have it.

    Truth values are numbers, too, since those may be missing.
    """
    names, kinds = column_names(X) or [], cells_of(X).kinds
    single = all("32" in str(dtype) for dtype in getattr(X, "dtypes", []) if "loat" in str(dtype))
    floats = any("loat" in str(dtype) for dtype in getattr(X, "dtypes", []))
    number = FloatTensorType if single and floats else DoubleTensorType
    return [
        (name, (StringTensorType if kind == WORD else number)([None, 1]))
        for name, kind in zip(names, kinds, strict=True)
    ]
