"""Every public name explains itself."""

from __future__ import annotations

import importlib
import inspect
import os
import pkgutil

import pytest

import maxdisc

# Names of the design, and where users import them from.
PUBLIC = {
    "maxdisc": [
        *(
            "DiscriminativeMaxEnt",
            "Joint",
            "MaxDiscClassifier",
            "MaxDiscSearchCV",
            "ModelFileError",
            "Smoothing",
        ),
        *("TermFrequencyVectorizer", "load", "save"),
    ],
    "maxdisc.adapters.anndata": ["annotate", "fit", "rank_genes"],
    "maxdisc.adapters.dask": ["fit", "predict", "predict_proba"],
    "maxdisc.adapters.onnx": ["to_onnx"],
    "maxdisc.adapters.spark": ["SparkMaxDiscClassifier", "SparkMaxDiscClassifierModel"],
    "maxdisc.calibration": ["Evidence"],
    "maxdisc.datasets": ["load_docstrings"],
    "maxdisc.decisions": ["Explanation"],
    "maxdisc.densities": ["ClassDensities"],
    "maxdisc.divergences": ["jensen_shannon", "js_gm", "rao"],
    "maxdisc.engines": ["LabelledStream"],
    "maxdisc.families": [
        *("Bernoulli", "Beta", "Categorical", "Exponential", "Gamma", "Gaussian", "Geometric", "Hurdle"),
        *("NumericFamily", "Poisson", "Support", "moments"),
    ],
    "maxdisc.families.functions": [
        *("Cosine", "Deviation", "Indicator", "LogAbove", "LogBelow", "Power", "Sine", "Spline", "Table"),
    ],
    "maxdisc.model_file": ["describe", "from_bytes", "to_bytes"],
    "maxdisc.moments": ["ClassMoments"],
    "maxdisc.plots": [
        *("DensityDisplay", "EvidenceDisplay", "PathDisplay", "RankingDisplay", "ReliabilityDisplay"),
    ],
    "maxdisc.report": ["Report", "evaluate"],
    "maxdisc.rows": ["ArrayRows", "BatchRows", "HashFolds"],
    "maxdisc.selection": ["SelectionPath"],
    "maxdisc.serve": ["Limits", "Service", "create_app"],
    "maxdisc.testing": [
        *("batches_of", "check_divergence", "check_family", "check_moments", "check_rows", "random_data"),
        "taking",
    ],
    "maxdisc.words": ["CountScaler"],
}


def imported(name):
    """A module, or None if it needs an extra that is not there."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        if "pip install" not in str(error) or os.environ.get("MAXDISC_REQUIRE_EXTRAS"):
            raise
        return None


@pytest.mark.parametrize(
    ("module", "name"), [(module, name) for module, names in PUBLIC.items() for name in names]
)
def test_a_public_name_has_a_docstring_with_an_example(module, name):
    found = imported(module)
    if found is None:
        pytest.skip(f"{module} needs an extra that is not installed")
    thing = getattr(found, name)
    doc = inspect.getdoc(thing)
    assert doc, f"{module}.{name} has no docstring"
    assert ">>> " in doc, f"{module}.{name} has no example"


def everything():
    for info in pkgutil.walk_packages(maxdisc.__path__, "maxdisc."):
        module = imported(info.name)
        if module is None:
            continue
        yield info.name, module
        for name, thing in vars(module).items():
            if name.startswith("_") or getattr(thing, "__module__", None) != info.name:
                continue
            if inspect.isclass(thing) or inspect.isfunction(thing):
                yield f"{info.name}.{name}", thing


@pytest.mark.parametrize(("name", "thing"), list(everything()), ids=lambda v: v if isinstance(v, str) else "")
def test_everything_without_an_underscore_has_a_docstring(name, thing):
    assert inspect.getdoc(thing), name


def test_lazy_names_resolve_and_others_do_not():
    assert maxdisc.__version__
    assert "MaxDiscClassifier" in dir(maxdisc)
    with pytest.raises(AttributeError, match="no attribute 'Classifier'"):
        _ = maxdisc.Classifier
