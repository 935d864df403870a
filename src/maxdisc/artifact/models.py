"""The inside of a model file: which arrays make up a model, and what must hold among them."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from maxdisc.artifact.container import ModelFileError, short
from maxdisc.artifact.values import (
    decoded,
    decoded_strings,
    encoded,
    encoded_strings,
    label_type,
    labels_of_numbers,
    labels_of_words,
)
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.decision import LinearDecision
from maxdisc.divergences import FeatureRanking
from maxdisc.families import Family
from maxdisc.moments import ClassMoments
from maxdisc.selection import Choice, SelectionPath
from maxdisc.smoothing import Smoothing

Array = npt.NDArray[Any]
Node = dict[str, Any]
Value = TypeVar("Value")


class Field(NamedTuple):
    """An array of a model: its axes by letter, and what its numbers are."""

    axes: str
    dtype: type[np.generic] = np.float64
    optional: bool = False
    finite: bool = True


#: The arrays of each value. Axes of one letter have one length throughout a classifier: L statistics,
#: C classes, D features, K kept ones, S sizes, V folds, U unsolved features.
FIELDS: dict[type, dict[str, Field]] = {
    ClassMoments: {
        "weight": Field("C"),
        "sums": Field("LCD"),
        "origin": Field("CD", optional=True),
        "observed": Field("CD", optional=True),
        "nonzero": Field("D", optional=True),
    },
    FeatureRanking: {
        "scores": Field("D"),
        "order": Field("D", np.int64),
        "unsolved": Field("U", np.int64),
    },
    LinearDecision: {
        "columns": Field("K", np.int64),
        "origin": Field("K"),
        "weights": Field("LCK"),
        "baseline": Field("CK"),
        "log_prior": Field("C", finite=False),
    },
    SelectionPath: {
        "sizes": Field("S", np.int64),
        "accuracy": Field("VS"),
        "log_loss": Field("VS"),
        "weight": Field("V"),
        "n_rows": Field("V"),
    },
}


# ---------------------------------------------------------------------------------------------- writing


def described(model: Any, tensors: dict[str, Array], functions: Mapping[str, Any], moments: bool) -> Node:
    """The part of the document that describes a model; its arrays are added to ``tensors``."""
    if type(model) is not Pipeline:
        return _described_step(model, tensors, functions, moments, "")
    check_is_fitted(model)
    steps = [
        [name, _described_step(step, tensors, functions, moments, f"{position}.")]
        for position, (name, step) in enumerate(model.steps)
    ]
    return {"kind": "pipeline", "verbose": bool(model.verbose), "steps": steps}


def _described_step(
    model: Any, tensors: dict[str, Array], functions: Mapping[str, Any], moments: bool, prefix: str
) -> Node:
    if type(model) is not MaxDiscClassifier:
        raise ModelFileError(
            f"a {type(model).__name__} cannot be saved: a model file holds a MaxDiscClassifier, or a Pipeline "
            "of such."
        )
    check_is_fitted(model)
    return {
        "kind": "classifier",
        "parameters": {
            name: encoded(value, functions, name) for name, value in _lasting(model.get_params(False)).items()
        },
        "fitted": _described_classifier(model, tensors, functions, moments, prefix),
    }


def _lasting(parameters: dict[str, Any]) -> dict[str, Any]:
    """Parameters without what only another fit would need and no file can hold."""
    if not isinstance(parameters["cv"], str | numbers.Integral):
        n_splits = getattr(parameters["cv"], "n_splits", None)
        parameters["cv"] = n_splits if isinstance(n_splits, numbers.Integral) and n_splits > 1 else 5
    if not isinstance(parameters["random_state"], numbers.Integral):
        parameters["random_state"] = None
    return parameters


def _described_classifier(
    model: MaxDiscClassifier,
    tensors: dict[str, Array],
    functions: Mapping[str, Any],
    moments: bool,
    prefix: str,
) -> Node:
    def put(name: str, arrays: Mapping[str, Array | None]) -> None:
        tensors.update({f"{prefix}{name}{k}": v for k, v in arrays.items() if v is not None})

    def put_value(name: str, value: Any) -> None:
        put(f"{name}.", {field: getattr(value, field) for field in FIELDS[type(value)]})

    prior, divergence = model._settings
    labels = label_type(model.classes_)
    if labels[1] in "OU":
        put("classes.", encoded_strings(model.classes_.tolist(), "classes_"))
    else:
        put("classes", {"": model.classes_.astype(model.classes_.dtype.newbyteorder("="))})
    if model._names is not None:
        put("names.", encoded_strings(model._names.tolist(), "feature_names_in_"))
    put("class_prior", {"": model.class_prior_})
    put("prior", {"": prior})
    put_value("ranking", model._model[0])
    put_value("decision", model._model[1])
    if model.path_ is not None:
        put_value("path", model.path_)
    if moments:
        put_value("moments", model.moments_)
    return {
        "labels": labels,
        "family": encoded(model.families_[0][0], functions, "family"),
        "divergence": encoded(divergence, functions, "divergence"),
        "smoothing": encoded(model.smoothing_, functions, "smoothing_"),
        "path": None if model.path_ is None else encoded(model.path_.smoothing, functions, "path_"),
        "moments": moments,
    }


# ---------------------------------------------------------------------------------------------- reading


@dataclass(frozen=True, eq=False)
class Shelf:
    """The tensors of a file, each handed out once, with axes whose lengths must agree.

    Parameters
    ----------
    tensors : dict of str to ndarray
        Those that are left; shared by the steps of a pipeline.
    functions : dict of str to object
        What the user supplied.
    prefix : str
        What the names of this step's tensors begin with.
    lengths : dict of str to int
        Of the axes seen so far.
    """

    tensors: dict[str, Array]
    functions: Mapping[str, Any]
    prefix: str
    lengths: dict[str, int]

    def has(self, name: str) -> bool:
        """Whether the tensor is there and was not yet taken."""
        return self.prefix + name in self.tensors

    def take(self, name: str, field: Field) -> Array:
        """A tensor of the type and shape it must have."""
        tensor = self._pop(name)
        due = tuple(self.lengths.get(axis, "any") for axis in field.axes)
        fits = len(due) == tensor.ndim and all(a in (b, "any") for a, b in zip(due, tensor.shape, strict=True))
        if tensor.dtype != field.dtype or not fits:
            wanted = f"{np.dtype(field.dtype)} of shape {due}"
            raise ModelFileError(f"{name} is {tensor.dtype} of shape {tensor.shape}, not {wanted}.")
        self.lengths.update(zip(field.axes, tensor.shape, strict=True))
        if field.finite and tensor.dtype.kind == "f" and not np.isfinite(tensor).all():
            raise ModelFileError(f"{name} has a NaN or an infinity.")
        return tensor.astype(np.intp, copy=False) if tensor.dtype.kind == "i" else tensor

    def value(self, kind: type[Value], name: str, **others: Any) -> Value:
        """One of the values whose arrays are listed in ``FIELDS``."""
        arrays = {
            key: None if field.optional and not self.has(f"{name}.{key}") else self.take(f"{name}.{key}", field)
            for key, field in FIELDS[kind].items()
        }
        return kind(**arrays, **others)

    def strings(self, name: str) -> list[str]:
        """Strings from their bytes and offsets."""
        data, offsets = self._pop(f"{name}.bytes"), self._pop(f"{name}.offsets")
        if (data.dtype, offsets.dtype, data.ndim, offsets.ndim) != (np.uint8, np.int64, 1, 1):
            raise ModelFileError(f"its strings, {name}, are not stored as strings are.")
        return decoded_strings(data, offsets, name)

    def labels(self, dtype: Any) -> Array:
        """The classes: at least one, sorted, each once."""
        if not isinstance(dtype, str) or len(dtype) < 2:
            raise ModelFileError(f"it has labels of a type that this version does not know: {short(dtype)}.")
        if dtype[1] in "OU":
            classes = labels_of_words(self.strings("classes"), dtype)
        else:
            classes = labels_of_numbers(self._pop("classes"), dtype)
        if classes.ndim != 1 or len(classes) == 0 or not (classes[:-1] < classes[1:]).all():
            raise ModelFileError("its classes are not in order.")
        self.lengths["C"] = len(classes)
        return classes

    def known(self, node: Any, kind: type[Value], what: str) -> Value:
        """A value from the document, of the type it must have."""
        value = decoded(node, self.functions)
        if not isinstance(value, kind):
            raise ModelFileError(f"its {what} is {short(value)}, which is none.")
        return value

    def _pop(self, name: str) -> Array:
        if not self.has(name):
            raise ModelFileError(f"{self.prefix}{name} is missing.")
        return self.tensors.pop(self.prefix + name)


def rebuilt(node: Any, tensors: dict[str, Array], functions: Mapping[str, Any]) -> Any:
    """The model that :func:`described` described; raise :class:`ModelFileError` unless all of it is sound."""
    tensors = dict(tensors)
    if isinstance(node, dict) and node.get("kind") == "pipeline":
        model = _rebuilt_pipeline(node, tensors, functions)
    else:
        model = _rebuilt_step(node, Shelf(tensors, functions, "", {}))
    if tensors:
        raise ModelFileError(f"it has tensors that no model has, such as {short(min(tensors))}.")
    return model


def _rebuilt_pipeline(node: Node, tensors: dict[str, Array], functions: Mapping[str, Any]) -> Pipeline:
    require_keys(node, {"kind", "verbose", "steps"})
    listed = node["steps"]
    pairs = isinstance(listed, list) and all(isinstance(step, list) and len(step) == 2 for step in listed)
    if not pairs or not listed or not isinstance(node["verbose"], bool):
        raise ModelFileError("its pipeline is not described as pipelines are.")
    names = [name for name, _ in listed]
    if not all(isinstance(name, str) and "__" not in name for name in names) or len({*names}) < len(names):
        raise ModelFileError(f"the steps of its pipeline have no proper names: {short(names)}.")
    steps = [
        (name, _rebuilt_step(step, Shelf(tensors, functions, f"{position}.", {})))
        for position, (name, step) in enumerate(listed)
    ]
    _require_joined([step for _, step in steps])
    return Pipeline(steps, verbose=node["verbose"])


def _require_joined(steps: list[Any]) -> None:
    """Raise :class:`ModelFileError` unless each step takes as many features as the one before it gives."""
    for before, after in zip(steps[:-1], steps[1:], strict=True):
        if before.n_selected_ != after.n_features_in_:
            raise ModelFileError("the steps of its pipeline do not fit each other.")


def require_keys(node: Any, keys: set[str]) -> None:
    """Raise :class:`ModelFileError` unless a part of the document has just these entries."""
    if not isinstance(node, dict) or node.keys() != keys:
        raise ModelFileError(f"it has {short(node)} where entries {sorted(keys)} are due.")


def _rebuilt_step(node: Any, shelf: Shelf) -> Any:
    require_keys(node, {"kind", "parameters", "fitted"})
    if node["kind"] != "classifier":
        raise ModelFileError(f"it has a kind of model that this version does not know: {short(node['kind'])}.")
    known = MaxDiscClassifier().get_params(deep=False).keys()
    given = node["parameters"]
    if not isinstance(given, dict) or not given.keys() <= known:
        raise ModelFileError(f"it has parameters that this version does not know: {short(given)}.")
    parameters = {name: decoded(value, shelf.functions) for name, value in given.items()}
    return _rebuilt_classifier(MaxDiscClassifier(**parameters), node["fitted"], shelf)


def _rebuilt_classifier(model: MaxDiscClassifier, fitted: Any, shelf: Shelf) -> MaxDiscClassifier:
    require_keys(fitted, {"labels", "family", "divergence", "smoothing", "path", "moments"})
    family = shelf.known(fitted["family"], Family, "family")  # type: ignore[type-abstract]
    divergence = decoded(fitted["divergence"], shelf.functions)
    if not callable(divergence):
        raise ModelFileError(f"its divergence is {short(divergence)}, which is none.")
    smoothing = shelf.known(fitted["smoothing"], Smoothing, "smoothing")
    shelf.lengths["L"] = family.n_statistics
    classes = shelf.labels(fitted["labels"])
    ranking = shelf.value(FeatureRanking, "ranking")
    decision = shelf.value(LinearDecision, "decision", family=family)
    class_prior = shelf.take("class_prior", Field("C"))
    prior = shelf.take("prior", Field("C")) if shelf.has("prior") else None
    path = moments = None
    if fitted["path"] is not None:
        tried = shelf.known(fitted["path"], Smoothing, "smoothing")
        path = shelf.value(SelectionPath, "path", smoothing=tried)
    if shelf.known(fitted["moments"], bool, "'moments'"):
        moments = shelf.value(ClassMoments, "moments")
    with np.errstate(all="ignore"):
        require_sound(ranking, decision, class_prior, prior, path, moments)
    n_features, size = shelf.lengths["D"], shelf.lengths["K"]
    if shelf.has("names.offsets"):
        names = shelf.strings("names")
        if len(names) != n_features:
            raise ModelFileError(f"it has {len(names)} names for {n_features} features.")
        model.feature_names_in_ = np.array(names, dtype=object)
    choice = Choice(smoothing, size, path)
    settings = (prior, divergence)
    return model._set(
        family, classes, class_prior, settings, choice, n_features, moments, (ranking, decision)
    )


def require_sound(
    ranking: FeatureRanking,
    decision: LinearDecision,
    class_prior: Array,
    prior: Array | None,
    path: SelectionPath | None,
    moments: ClassMoments | None,
) -> None:
    """Raise :class:`ModelFileError` for arrays of right shapes that are no model."""
    n_features, size = len(ranking.scores), len(decision.columns)
    each_once = np.array_equal(np.sort(ranking.order), np.arange(n_features))
    laws = {
        "its ranking is no order of its features": each_once and _within(ranking.unsolved, n_features),
        "it does not keep the best of its features": 0 < size <= n_features
        and np.array_equal(decision.columns, ranking.order[:size]),
        "its class probabilities are none": _is_distribution(class_prior)
        and np.allclose(np.exp(decision.log_prior), class_prior, rtol=1e-6, atol=1e-300)
        and (prior is None or _is_distribution(prior)),
        "its densities do not integrate to 1": _is_normalised(decision),
        "its path of accuracies is none": path is None or _is_path(path, n_features),
        "its moments are none": moments is None or _are_moments(moments),
    }
    for complaint, holds in laws.items():
        if not holds:
            raise ModelFileError(f"{complaint}.")


def _within(columns: Array, n_features: int) -> bool:
    return bool(((columns >= 0) & (columns < n_features)).all())


def _is_distribution(values: Array) -> bool:
    return bool((values >= 0).all() and abs(values.sum() - 1) < 1e-8)


def _is_normalised(decision: LinearDecision) -> bool:
    """Whether baselines are the log-partitions of the weights, which must then be natural parameters."""
    weights, baseline = decision.weights, decision.baseline
    due = decision.family.log_partition(weights)
    size = 1 + np.abs(baseline) + np.abs(weights).sum(axis=0)
    silent = ~(weights.any(axis=(0, 1)) | baseline.any(axis=0))
    return bool((silent | (np.abs(due - baseline) <= 1e-6 * size)).all())


def _is_path(path: SelectionPath, n_features: int) -> bool:
    growing = np.diff(path.sizes, prepend=0) > 0
    fits = len(path.sizes) > 0 and growing.all() and path.sizes[-1] <= n_features
    shares = (path.accuracy >= 0).all() and (path.accuracy <= 1).all()
    return bool(fits and shares and len(path.weight) and (path.weight > 0).all() and (path.n_rows > 0).all())


def _are_moments(moments: ClassMoments) -> bool:
    weights = (moments.weight, moments.observed, moments.nonzero)
    return all((weight is None) or bool((weight >= 0).all()) for weight in weights)
