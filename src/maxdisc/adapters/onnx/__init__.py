"""Export of fitted models to ONNX graphs.

Importing this module registers the converters of the estimators with skl2onnx, also for pipelines.
"""

from __future__ import annotations

from typing import Any

from maxdisc.numerics.installation import pip_line

try:
    import onnx  # noqa: F401  # only whether it is there
    import skl2onnx
except ImportError as error:
    raise ImportError(f"maxdisc.adapters.onnx needs onnx and skl2onnx: {pip_line('onnx')}") from error

from skl2onnx._parse import _parse_sklearn

from maxdisc.adapters.onnx.classifiers import (
    OPTIONS,
    classifier_shapes,
    convert_discriminative,
    convert_max_disc,
)
from maxdisc.adapters.onnx.counts import (
    convert_scaler,
    convert_vectorizer,
    scaler_shapes,
    vectorizer_shapes,
)
from maxdisc.adapters.onnx.exporting import to_onnx
from maxdisc.classifier import MaxDiscClassifier
from maxdisc.discriminative import DiscriminativeMaxEnt
from maxdisc.search import MaxDiscSearchCV
from maxdisc.words.scaling import CountScaler
from maxdisc.words.vectorizer import TermFrequencyVectorizer

__all__ = ["to_onnx"]


def _parse_search(scope: Any, model: MaxDiscSearchCV, inputs: Any, custom_parsers: Any = None) -> Any:
    """Replace a search by its best model."""
    scope.add_options(id(model.best_classifier_), scope.get_options(model, {"zipmap": True}))
    return _parse_sklearn(scope, model.best_estimator_, inputs, custom_parsers=custom_parsers)


def _register() -> None:
    for model, alias, convert in (
        (MaxDiscClassifier, "MaxDiscClassifier", convert_max_disc),
        (DiscriminativeMaxEnt, "MaxDiscDiscriminativeMaxEnt", convert_discriminative),
    ):
        skl2onnx.update_registered_converter(model, alias, classifier_shapes, convert, options=OPTIONS)
    skl2onnx.update_registered_converter(
        TermFrequencyVectorizer,
        "MaxDiscTermFrequencyVectorizer",
        vectorizer_shapes,
        convert_vectorizer,
        options={"locale": None},
    )
    skl2onnx.update_registered_converter(CountScaler, "MaxDiscCountScaler", scaler_shapes, convert_scaler)
    # It is taken apart before it could be converted.
    search = ("MaxDiscSearchCV", classifier_shapes, convert_max_disc)
    skl2onnx.update_registered_converter(MaxDiscSearchCV, *search, parser=_parse_search, options=OPTIONS)


_register()
