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
        "DiscriminativeMaxEnt", "MaxDiscClassifier", "MaxDiscSearchCV", "ModelFileError", "load", "save",
    ],
    "maxdisc.adapters.anndata": ["annotate", "fit", "rank_genes"],
    "maxdisc.adapters.labelled": ["Labelled", "fit_labelled"],
    "maxdisc.adapters.onnx": ["to_onnx"],
    "maxdisc.adapters.spark": ["SparkMaxDiscClassifier", "SparkMaxDiscClassifierModel"],
    "maxdisc.artifact": ["describe", "from_bytes", "to_bytes"],
    "maxdisc.writing": ["atomic_write"],
    "maxdisc.families": [
        "Bernoulli", "Beta", "Exponential", "Gamma", "Gaussian", "Geometric", "Hurdle", "NumericFamily",
        "Poisson", "find_family", "moments",
    ],
    "maxdisc.support": ["Support"],
    "maxdisc.functions": [
        "Power", "LogAbove", "LogBelow", "Deviation", "Indicator", "Cosine", "Sine", "Spline", "Table",
    ],
    "maxdisc.dual": ["Problem", "Status", "expectations", "integrals", "solve"],
    "maxdisc.smoothing": ["Smoothing"],
    "maxdisc.moments": ["ClassMoments"],
    "maxdisc.counting": ["class_moments"],
    "maxdisc.densities": ["ClassDensities"],
    "maxdisc.divergences": ["js_gm", "FeatureRanking", "find_divergence"],
    "maxdisc.decision": ["LinearDecision"],
    "maxdisc.conditional": [
        "ClassFeatures", "Examples", "Prior", "SharedFeatures", "fit", "log_posterior",
    ],
    "maxdisc.products": ["ClassProducts"],
    "maxdisc.joint": ["Joint", "JointDecision", "LogTransform", "forward_search"],
    "maxdisc.averaging": ["AveragedDecision", "AveragedEvidence", "LinearForm"],
    "maxdisc.evidence": ["Evidence"],
    "maxdisc.held_out": ["band_edges"],
    "maxdisc.shared_weights": ["shared_weights"],
    "maxdisc.corrections": ["correct"],
    "maxdisc.scaling": ["CountScaler"],
    "maxdisc.averaged_folds": ["averaged_sizes", "weights_of"],
    "maxdisc.rows": ["ArrayRows", "BatchRows", "HashFolds"],
    "maxdisc.selection": ["SelectionPath", "size_grid"],
    "maxdisc.explain": ["Explanation"],
    "maxdisc.fitted": ["FittedModel"],
    "maxdisc.ranking": ["RankingTable"],
    "maxdisc.odds": ["LogOdds", "feature_odds"],
    "maxdisc.markers": ["ClassSums", "Markers"],
    "maxdisc.matching": ["MatchedColumns"],
    "maxdisc.curves": ["DensityCurves"],
    "maxdisc.measures": ["wilson_interval", "reliability_bins", "confusion_counts", "class_scores"],
    "maxdisc.wording": ["visible", "shortened", "counted", "listed"],
    "maxdisc.plots": [
        "DensityDisplay", "EvidenceDisplay", "PathDisplay", "RankingDisplay", "ReliabilityDisplay",
    ],
    "maxdisc.plots.inline": ["inline_svg"],
    "maxdisc.report": ["Report", "evaluate"],
    "maxdisc.datasets": ["load_docstrings"],
    "maxdisc.serve": ["Limits", "Service", "create_app"],
    "maxdisc.loaded": ["Taker"],
    "maxdisc.sources": [
        "Batch", "Dataset", "guess_roles", "joined", "matching", "nearest", "open_sink", "table_of",
    ],
    "maxdisc.testing": [
        *("batches_of", "check_divergence", "check_family", "check_moments", "check_rows", "random_data"),
        "taking",
    ],
}  # fmt: skip


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
