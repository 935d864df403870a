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
    "maxdisc.engines.partitioned_fit": ["Labelled", "fit_labelled"],
    "maxdisc.adapters.onnx": ["to_onnx"],
    "maxdisc.adapters.spark": ["SparkMaxDiscClassifier", "SparkMaxDiscClassifierModel"],
    "maxdisc.model_file": ["describe", "from_bytes", "to_bytes"],
    "maxdisc.model_file.atomic_writes": ["atomic_write"],
    "maxdisc.families": [
        "Bernoulli", "Beta", "Exponential", "Gamma", "Gaussian", "Geometric", "Hurdle", "NumericFamily",
        "Poisson", "find_family", "moments",
    ],
    "maxdisc.families.support": ["Support"],
    "maxdisc.families.functions": [
        "Power", "LogAbove", "LogBelow", "Deviation", "Indicator", "Cosine", "Sine", "Spline", "Table",
    ],
    "maxdisc.families.dual": ["Problem", "Status", "expectations", "integrals", "solve"],
    "maxdisc.moments.smoothing": ["Smoothing"],
    "maxdisc.moments.class_moments": ["ClassMoments"],
    "maxdisc.moments.counting": ["class_moments"],
    "maxdisc.densities.class_densities": ["ClassDensities"],
    "maxdisc.divergences.class_divergences": ["js_gm", "FeatureRanking", "find_divergence"],
    "maxdisc.decisions.linear": ["LinearDecision"],
    "maxdisc.conditional.model": [
        "ClassFeatures", "Examples", "Prior", "SharedFeatures", "fit", "log_posterior",
    ],
    "maxdisc.moments.products": ["ClassProducts"],
    "maxdisc.decisions.joint": ["Joint", "JointDecision", "LogTransform", "forward_search"],
    "maxdisc.decisions.joint_average": ["AveragedDecision", "AveragedEvidence", "LinearForm"],
    "maxdisc.calibration.evidence": ["Evidence"],
    "maxdisc.selection.held_out": ["band_edges"],
    "maxdisc.conditional.shared_weights": ["shared_weights"],
    "maxdisc.conditional.corrections": ["correct"],
    "maxdisc.words.scaling": ["CountScaler"],
    "maxdisc.selection.averaged_fold_models": ["averaged_sizes", "weights_of"],
    "maxdisc.rows.row_sources": ["ArrayRows", "BatchRows", "HashFolds"],
    "maxdisc.selection.fold_models": ["SelectionPath", "size_grid"],
    "maxdisc.decisions.explanation": ["Explanation"],
    "maxdisc.inspection.model_view": ["ModelView"],
    "maxdisc.inspection.ranking": ["RankingTable"],
    "maxdisc.inspection.odds": ["LogOdds", "feature_odds"],
    "maxdisc.significance.markers": ["ClassSums", "Markers"],
    "maxdisc.inspection.matching": ["MatchedColumns"],
    "maxdisc.inspection.curves": ["DensityCurves"],
    "maxdisc.inspection.measures": ["wilson_interval", "reliability_bins", "confusion_counts"],
    "maxdisc.inspection.safe_text": ["visible", "shortened", "counted", "listed"],
    "maxdisc.plots": [
        "DensityDisplay", "EvidenceDisplay", "PathDisplay", "RankingDisplay", "ReliabilityDisplay",
    ],
    "maxdisc.plots.inline_svg": ["inline_svg"],
    "maxdisc.report": ["Report", "evaluate"],
    "maxdisc.datasets": ["load_docstrings"],
    "maxdisc.serve": ["Limits", "Service", "create_app"],
    "maxdisc.inspection.model_input": ["ModelInput"],
    "maxdisc.files": [
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
