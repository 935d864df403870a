"""Saving and loading of model files, without pickle.

The format is described in ``docs/model-file.md``.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

from maxdisc.model_file.atomic_writes import atomic_write
from maxdisc.model_file.container import Container, ModelFileError, write
from maxdisc.model_file.reading import (
    Shelf,
    Step,
    oldest_format,
    rebuilt,
    require_figures,
    require_keys,
    soft_of,
    steps_of,
)
from maxdisc.model_file.values import decoded
from maxdisc.model_file.writing import Describer

_KEYS = {"format", "maxdisc", "about", "model"}


def save(
    model: Any,
    path: str | os.PathLike[str],
    *,
    moments: bool = False,
    about: dict[str, Any] | None = None,
    functions: Mapping[str, Any] | None = None,
) -> None:
    """Write a fitted model to one file, atomically.

    Parameters
    ----------
    model : MaxDiscClassifier, DiscriminativeMaxEnt, TermFrequencyVectorizer, CountScaler or Pipeline
        The model; a pipeline may have steps of these kinds. A classifier of documents is saved with its
        vectorizer, which must be a TermFrequencyVectorizer. For a :class:`maxdisc.MaxDiscSearchCV`,
        ``best_estimator_`` is saved and loaded. Parameters that only another ``fit`` would need and that a
        file cannot hold are replaced: a splitter or list of splits as ``cv`` by its number of folds, or 5; a
        generator as ``random_state`` and ``n_jobs`` by None. For a pipeline, steps and ``verbose`` are saved.
    path : path-like
        The file; an existing one is replaced when the new one is complete.
    moments : bool
        Whether to save the moments of all features, which ``partial_fit``, ``choose_n_features``, ``sample``
        and ``ranking_table`` need. By default the file holds what predictions, explanations, reports, exports
        and the service need of the selected features, and is many times smaller.
    about : dict, optional
        Metadata that JSON can hold, returned by :func:`describe`.
    functions : dict of str to object, optional
        User-defined divergence, family or token rule, by name: code is not stored. Pass the same names to
        :func:`load`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sklearn.datasets import load_iris
    >>> from maxdisc import MaxDiscClassifier, load, save
    >>> X, y = load_iris(return_X_y=True)
    >>> model = MaxDiscClassifier().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "iris.maxdisc")
    ...     save(model, path)
    ...     again = load(path)
    >>> bool((again.predict_proba(X) == model.predict_proba(X)).all())
    True
    """
    tensors, document = _described(model, moments, about, functions)
    with atomic_write(path) as file:
        write(file, tensors, document, deflate=not moments)


def to_bytes(model: Any, *, moments: bool = False) -> bytes:
    """Return the bytes that :func:`save` would write.

    Parameters
    ----------
    model, moments
        As for :func:`save`.

    Returns
    -------
    bytes
        A model file.

    Examples
    --------
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc.model_file.persistence import from_bytes, to_bytes
    >>> model = MaxDiscClassifier(n_features=1, evidence="raw")
    >>> model = model.fit([[1.0, 2.0], [3.0, 2.5]], ["no", "yes"])
    >>> print(from_bytes(to_bytes(model)).predict([[3.0, 2.5]]))
    ['yes']
    """
    tensors, document = _described(model, moments, None, None)
    file = io.BytesIO()
    write(file, tensors, document, deflate=not moments)
    return file.getvalue()


def _described(
    model: Any, moments: bool, about: dict[str, Any] | None, functions: Mapping[str, Any] | None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the tensors and the document of a model file."""
    if about is not None and not isinstance(about, dict):
        raise ModelFileError(f"about must be a dict, got {about!r}.")
    tensors: dict[str, Any] = {}
    described = Describer(functions or {}, bool(moments), tensors).model(model)
    document = {
        "format": oldest_format(described, tensors),
        "maxdisc": version("maxdisc"),
        "about": about or {},
        "model": described,
    }
    return tensors, document


def load(path: str | os.PathLike[str], *, functions: Mapping[str, Any] | None = None) -> Any:
    """Load a model; its predictions are the same to the last bit.

    The file is memory-mapped. Replacing it (as :func:`save` does) does not change loaded models; do not
    overwrite a file in place while a model uses it.

    Parameters
    ----------
    path : path-like
        A model file. It is data: nothing in it is ever run.
    functions : dict of str to object, optional
        The functions that were passed to :func:`save`.

    Returns
    -------
    MaxDiscClassifier, DiscriminativeMaxEnt, TermFrequencyVectorizer, CountScaler or Pipeline
        The model, fitted.

    Raises
    ------
    ModelFileError
        In one line, for a file that is missing, damaged, newer than this version, or not a model.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from maxdisc import load
    >>> with tempfile.NamedTemporaryFile(suffix=".maxdisc") as file:
    ...     try:
    ...         load(file.name)
    ...     except ValueError as error:
    ...         print(str(error).removeprefix(file.name))
    : this is not a model file of maxdisc, or not all of it.
    """
    with _named(path):
        return _rebuilt(Container.open(path), functions)


def from_bytes(content: bytes, name: str = "these bytes") -> Any:
    """Load a model from the bytes of :func:`to_bytes` or of a model file.

    Parameters
    ----------
    content : bytes
        All of the file.
    name : str
        Name for messages.

    Returns
    -------
    MaxDiscClassifier, DiscriminativeMaxEnt, TermFrequencyVectorizer, CountScaler or Pipeline
        The model, fitted.

    Examples
    --------
    >>> from maxdisc.model_file.persistence import from_bytes
    >>> try:
    ...     from_bytes(b"no model")
    ... except ValueError as error:
    ...     print(error)
    these bytes: this is not a model file of maxdisc, or not all of it.
    """
    with _named(name):
        # A copy, into which code may write as into a file that was mapped.
        return _rebuilt(Container.of(bytearray(content)), None)


def _rebuilt(container: Container, functions: Mapping[str, Any] | None) -> Any:
    """Return the model of a container, all of which is read."""
    document = _sound(container).document
    # Both read all of it. A damaged file is reported as damaged, whatever other errors this causes.
    with ThreadPoolExecutor(1) as beside:
        verified = beside.submit(container.verify)
        try:
            return rebuilt(document["model"], container.tensors(), functions or {}, document["format"])
        finally:
            verified.result()


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the header of a model file, without reading the rest or verifying the checksum.

    Parameters
    ----------
    path : path-like
        A model file.

    Returns
    -------
    dict
        ``format``, ``maxdisc`` (the version that wrote it), ``about``, ``kind`` ("classifier", "weighed",
        "joint", "averaged", "mixed", "vectorizer", "scaler", "discriminative", "pipeline" or "documents", for
        a classifier of documents), ``bytes``, ``tensors`` (dtype, shape and bytes by name) and ``steps``: one
        dict for each step of a pipeline, two for a classifier of documents, or just one, with ``name`` (None
        outside a pipeline), ``kind``, ``parameters`` (as stored) and, for a classifier, ``classes``,
        ``n_features``, ``n_selected``, ``moments`` (whether ``partial_fit`` can continue) and, if its
        evidence is calibrated, ``evidence``: ``log_loss``, ``accuracy``, ``n_rows`` and ``ridge``, the
        ``edges`` and ``weights`` of its bands, and how many features are ``corrected``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from maxdisc import MaxDiscClassifier
    >>> from maxdisc import save
    >>> from maxdisc.model_file.persistence import describe
    >>> model = MaxDiscClassifier(n_features=1, evidence="raw")
    >>> model = model.fit([[1.0, 2.0], [3.0, 2.5]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.maxdisc")
    ...     save(model, path, about={"rows": 2})
    ...     facts = describe(path)
    >>> facts["about"], facts["steps"][0]["n_selected"], facts["steps"][0]["classes"]
    ({'rows': 2}, 1, ['no', 'yes'])
    """
    with _named(path):
        container = _sound(Container.open(path))
        model = container.document["model"]
        steps = [_facts(step, container) for step in steps_of(model)]
        return {
            "format": container.document["format"],
            "maxdisc": container.document["maxdisc"],
            "about": container.document["about"],
            "kind": model["kind"],
            "bytes": len(container.buffer),
            "tensors": {
                name: {"dtype": e.dtype.name, "shape": list(e.shape), "bytes": e.end - e.begin}
                for name, e in container.entries.items()
            },
            "steps": steps,
        }


def _facts(step: Step, container: Container) -> dict[str, Any]:
    """Return what is known of a step from its sizes, and its classes."""
    shelf = Shelf(container.tensors(), {}, step.prefix)
    facts = {"name": step.name, "kind": step.kind, "parameters": step.parameters}
    if step.kind == "vectorizer":
        n_terms = shelf.length("terms.offsets") - 1
        return {**facts, "n_features": step.fitted.get("n_features", n_terms), "n_terms": n_terms}
    if step.kind == "scaler":
        return {**facts, "n_features": step.fitted["n_features"]}
    facts["classes"] = shelf.labels(step.fitted["labels"]).tolist()
    if step.kind == "discriminative":
        width = shelf.width("coef")
        return {**facts, "n_features": width, "n_selected": width, "moments": False}
    if "unlabelled" in step.fitted:
        steps, weight = soft_of(step.fitted)
        facts["unlabelled"] = {"steps": steps, "weight": weight}
    if step.fitted.get("evidence") is not None:
        require_figures(step.fitted["evidence"])
        facts["evidence"] = {
            **step.fitted["evidence"],
            "edges": shelf.listed("evidence.edges"),
            "weights": shelf.listed("evidence.weights"),
            "corrected": shelf.length("evidence.columns") if shelf.has("evidence.columns") else 0,
            "by_length": "length" in step.fitted,
        }
    n_features = step.fitted.get("n_features") or shelf.length("ranking.order")
    return {
        **facts,
        "families": _families(step, shelf, n_features),
        "n_features": n_features,
        "n_selected": shelf.length("decision.columns"),
        "moments": step.fitted["moments"],
    }


def _families(step: Step, shelf: Shelf, n_features: int) -> dict[str, int]:
    """Return how many features each family describes; one of the user's own is called so."""
    found: dict[str, int] = {}
    mixed = step.kind == "mixed"
    nodes = step.fitted["families"] if mixed else [step.fitted["family"]]
    for place, node in enumerate(nodes if isinstance(nodes, list) else []):
        name = _family_name(shelf, node)
        found[name] = found.get(name, 0) + (shelf.length(f"schema.family{place}") if mixed else n_features)
    if mixed and (n_categories := shelf.length("schema.categories")):
        found["categorical"] = n_categories
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _family_name(shelf: Shelf, node: Any) -> str:
    try:
        return str(getattr(decoded(node, shelf.functions), "name", "own"))
    except ModelFileError:
        return "own"  # whose code only load is given


def _sound(container: Container) -> Container:
    document = container.document
    require_keys(document, _KEYS)
    if not isinstance(document["about"], dict) or not isinstance(document["maxdisc"], str):
        raise ModelFileError("it does not say what it is about as model files do.")
    return container


@contextmanager
def _named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Say of which file an error speaks."""
    try:
        yield
    except (ModelFileError, RecursionError) as error:
        reason = error if isinstance(error, ModelFileError) else "its document is nested too deeply."
        raise ModelFileError(f"{os.fspath(path)}: {reason}") from None
