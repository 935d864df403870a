"""Converters of the classifiers: labels and probabilities from scores."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import TensorProto
from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, Int64TensorType, StringTensorType
from sklearn.utils.validation import check_is_fitted

from maxdisc.adapters.onnx.decisions import mixed_scores, plain_scores
from maxdisc.adapters.onnx.graph import Graph
from maxdisc.adapters.onnx.inputs import Inputs
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.decisions.mixed import MixedDecision
from maxdisc.discriminative import DiscriminativeMaxEnt
from maxdisc.fitting.data import names_of
from maxdisc.rows.schema import plain_family

#: The node that stops a run, as the library refuses such rows; messages of runtimes have its name.
GUARD = "maxdisc_cannot_score_a_row_with_such_a_value_or_a_missing_cell"
#: What a caller may ask for: see skl2onnx.
OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [False, True],
    "output_class_labels": [False, True],
    "raw_scores": [False, True],
}


def classifier_shapes(operator: Any) -> None:
    """The types of labels (n,) and probabilities (n, C)."""
    if hasattr(operator.raw_operator, "vectorizer_"):
        raise ValueError("this model takes documents: export it with maxdisc.adapters.onnx.to_onnx.")
    classes = _answers(operator)
    n_rows = operator.inputs[0].get_first_dimension()
    kind = StringTensorType if classes.dtype.kind == "O" else Int64TensorType
    operator.outputs[0].set_type(kind([n_rows]))
    doubles = any(isinstance(variable.type, DoubleTensorType) for variable in operator.inputs)
    # A ZipMap takes single precision only.
    doubles &= _option(operator, "zipmap") is not True
    kind = DoubleTensorType if doubles else FloatTensorType
    operator.outputs[1].set_type(kind([n_rows, len(classes)]))


def convert_max_disc(scope: Any, operator: Any, container: Any) -> None:
    """The nodes of a :class:`maxdisc.MaxDiscClassifier`."""
    model: MaxDiscClassifier = operator.raw_operator
    graph = Graph(scope, container)
    inputs = Inputs(graph, operator.inputs, int(model.n_features_in_), names_of(model))
    decision, schema = model.decision_, model._schema
    if isinstance(decision, MixedDecision):
        assert schema is not None  # only a table has such a decision
        scores = mixed_scores(graph, decision, schema, inputs)
    else:
        family = model.families_[0][0] if schema is None else plain_family(schema)
        assert family is not None  # else the decision is mixed
        scores = plain_scores(graph, decision, family, inputs)
    _answer(graph, operator, scores)


def convert_discriminative(scope: Any, operator: Any, container: Any) -> None:
    """The nodes of a :class:`maxdisc.DiscriminativeMaxEnt`."""
    model: DiscriminativeMaxEnt = operator.raw_operator
    graph = Graph(scope, container)
    inputs = Inputs(graph, operator.inputs, int(model.n_features_in_), names_of(model))
    weights, bias = model._by_class()
    scores = graph.product(inputs.numbers(np.arange(inputs.n_columns)), weights.T)
    _answer(graph, operator, graph.add("Add", scores, graph.constant(bias)))


def labels_of(model: Any) -> npt.NDArray[Any]:
    """Return the labels as ONNX can have them: strings or 64-bit integers."""
    check_is_fitted(model)
    classes = np.asarray(model.classes_)
    if classes.dtype.kind == "U" or all(isinstance(label, str) for label in classes.tolist()):
        return classes.astype(object)
    if classes.dtype.kind in "iubf" and (classes == np.rint(classes)).all():
        return classes.astype(np.int64)
    raise ValueError(
        f"ONNX has labels that are strings or integers, and this model has {classes.tolist()[0]!r}: fit it "
        "with labels of one of these kinds."
    )


def _option(operator: Any, name: str) -> Any:
    """Return what the caller has asked for; False if nothing."""
    return operator.scope_inst.get_options(operator.raw_operator, {name: False})[name]


def _answers(operator: Any) -> npt.NDArray[Any]:
    """Return the labels, or their places if these are asked for."""
    classes = labels_of(operator.raw_operator)
    return np.arange(len(classes)) if _option(operator, "nocl") else classes


def _answer(graph: Graph, operator: Any, scores: str) -> None:
    """Labels and probabilities; a row without a score ends the run."""
    classes = _answers(operator)
    label, answer = (variable.full_name for variable in operator.outputs)
    probabilities = graph.add("Softmax", scores, axis=1)
    lost = graph.add("IsNaN", graph.add("Gather", probabilities, graph.constant(0), axis=1))
    # There is no operator that refuses. To ask a list of one for its second entry is an error by definition.
    none = graph.add(
        "Gather",
        graph.constant(np.zeros(1, dtype=np.int64)),
        graph.cast(lost, TensorProto.INT64),
        axis=0,
        called=GUARD,
    )
    best = graph.add("ArgMax", scores, axis=1, keepdims=0)
    best = graph.add("Add", best, none)
    graph.add("Gather", graph.constant(classes), best, axis=0, result=label)
    shown = scores if _option(operator, "raw_scores") else probabilities
    # Probabilities wait for the guard as well.
    shown = graph.add("Add", shown, graph.cast(graph.add("Reshape", none, graph.constant([-1, 1]))))
    double = isinstance(operator.outputs[1].type, DoubleTensorType)
    graph.cast(shown, TensorProto.DOUBLE if double else TensorProto.FLOAT, result=answer)
