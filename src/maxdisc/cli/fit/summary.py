"""Summary of a fit, as text and as JSON."""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from maxdisc.cli.console import Speech, calibration_line, say_facts, size_of, unlabelled_line

if TYPE_CHECKING:
    from maxdisc.cli.labelled import Described
    from maxdisc.files import Roles
    from maxdisc.inspection.model_view import ModelView

#: Classes of fewer rows are named: there is little to learn from them.
FEW_ROWS = 10


def fit_facts(
    model: Any, roles: Roles, rows: Described, output: Path, seconds: float, search: Any = None
) -> dict[str, Any]:
    """Return what a fit found, for machines."""
    from maxdisc.calibration.evidence import Evidence as Weighed
    from maxdisc.inspection.model_view import ModelView

    fitted = ModelView.of(model)
    classifier = fitted.classifier
    path, weighed = classifier.path_, classifier.evidence_
    facts: dict[str, Any] = {
        "model": str(output),
        "bytes": output.stat().st_size,
        "kind": "text" if roles.text else "table",
        "text": roles.text,
        "label": roles.label,
        "rows": len(rows),
        "classes": len(classifier.classes_),
        "family": fitted.family.name,
        "families": fitted.family_counts,
        "families_selected": _families_of(fitted),
        "structure": "independent" if classifier.joint_ is None else "joint",
        "features": classifier.n_features_in_,
        "words_in_a_term": _words_in_a_term(fitted.before),
        "features_kept": classifier.n_selected_,
        "smoothing": classifier.smoothing_.amount,
        "evidence": _evidence_facts(classifier),
        **_class_facts(rows, classifier),
        "held_out_accuracy": None,
        "held_out_log_loss": None,
        "held_out_standard_error": None,
        "folds": None,
        "uncalibrated_log_loss": _finite(getattr(weighed, "raw_log_loss", None)),
        **_compiled_facts(),
        "seconds": round(seconds, 3),
    }
    stand_in = getattr(rows, "unlabelled", None)
    if stand_in is not None:
        facts["unlabelled"] = {
            "rows": int((rows.y == stand_in).sum()),
            "weight": classifier.unlabelled_weight_,
            "steps": classifier.n_iter_,
        }
    if path is not None:
        at = path.best_position(cast(Any, classifier.rule))
        if isinstance(weighed, Weighed):
            at = int(path.sizes.searchsorted(classifier.n_selected_))
        facts["held_out_accuracy"] = float(path.mean_accuracy[at] if weighed is None else weighed.accuracy)
        facts["held_out_log_loss"] = float(path.mean_log_loss[at] if weighed is None else weighed.log_loss)
        # The path is of evidence before the last calibration, so its folds are not those of this accuracy.
        error = path.standard_error[at] if weighed is None else _error_of_share(weighed)
        facts["held_out_standard_error"] = float(error)
        facts["folds"] = len(path.weight)
    if search is not None:
        facts["search"] = _search_facts(search)
    return facts


def _error_of_share(judged: Any) -> float:
    """Return the standard error of an accuracy as a share of rows."""
    return math.sqrt(max(judged.accuracy * (1 - judged.accuracy), 0.0) / max(judged.n_rows, 1.0))


def _families_of(fitted: ModelView) -> dict[str, int]:
    """Return how many of the selected features each family describes."""
    selected = fitted.families[fitted.classifier.decision_.columns]
    return dict(Counter(selected.tolist()).most_common())


def _finite(value: float | None) -> float | None:
    """Return a figure, or None for one that there is not."""
    return value if value is not None and math.isfinite(value) else None


def _compiled_facts() -> dict[str, Any]:
    """Return what this process has compiled; numba is not imported to find that out."""
    compiling: Any = sys.modules.get("maxdisc.numerics.compiling")
    if compiling is None:
        return {"compiled_functions": 0, "compiled_seconds": 0.0}
    count, seconds = compiling.compiled_so_far()
    is_kept = compiling.cache_folder() is not None
    return {"compiled_functions": count, "compiled_seconds": round(seconds, 3), "compiled_is_kept": is_kept}


def _class_facts(rows: Described, classifier: Any) -> dict[str, Any]:
    """Return what the shares of the classes alone get, and which classes have few rows."""
    import numpy as np

    labels, counts = np.unique(rows.y, return_counts=True)
    is_class = labels != getattr(rows, "unlabelled", None)
    labels, counts = labels[is_class], counts[is_class]
    if len(rows.y) != len(rows):
        # A stream remembers each class once; the shares are those of all its rows.
        labels = classifier.classes_.astype(str)
        counts = np.rint(classifier.class_prior_ * len(rows)).astype(np.int64)
    shares = counts / counts.sum()
    few = np.flatnonzero(counts < FEW_ROWS)
    few = few[np.argsort(counts[few], kind="stable")]
    return {
        "majority_class": str(labels[counts.argmax()]),
        "majority_accuracy": float(shares.max()),
        "baseline_log_loss": float(-(shares[shares > 0] * np.log(shares[shares > 0])).sum()),
        "small_classes": {str(labels[c]): int(counts[c]) for c in few},
    }


def _search_facts(search: Any) -> dict[str, Any]:
    """Return which models were compared, and which was chosen."""
    columns = (search.cv_results_[name] for name in ("params", "log_loss", "accuracy"))
    return {
        "chosen": search.best_index_,
        "candidates": [
            {**params, "log_loss": loss, "accuracy": accuracy}
            for params, loss, accuracy in zip(*columns, strict=True)
        ],
    }


def _words_in_a_term(before: Any) -> int:
    """Return the most words in a row that are one feature of a model of text."""
    found: tuple[int, int] = getattr(before[0], "ngram_range", (1, 1)) if before is not None else (1, 1)
    return found[1]


def _evidence_facts(classifier: Any) -> dict[str, Any]:
    """Return the facts of the calibration."""
    from maxdisc.calibration.evidence import Evidence as Weighed

    weighed = classifier.evidence_
    if isinstance(weighed, Weighed):
        corrected = 0 if weighed.columns is None else len(weighed.columns)
        kind = "refined" if corrected else "calibrated"
        by_length = weighed.lengths is not None
        weights = weighed.weights.tolist()
        return {"kind": kind, "weights": weights, "corrected": corrected, "by_length": by_length}
    kind = "raw" if weighed is None else "averaged"
    return {"kind": kind, "weights": [], "corrected": 0, "by_length": False}


def show_facts(facts: dict[str, Any]) -> None:
    """Show what a fit found, a line for each fact."""
    from maxdisc.inspection.safe_text import counted

    noun = "features" if facts["kind"] != "text" else "terms" if facts["words_in_a_term"] > 1 else "words"
    kept, of = facts["features_kept"], facts["features"]
    lines = [
        ("rows", f"{facts['rows']:,} in {facts['classes']} classes"),
        *_small_classes(facts["small_classes"]),
        (noun, f"{kept:,} of {of:,} {noun} selected ({_family_summary(facts)})"),
        (
            "baseline",
            f"accuracy {facts['majority_accuracy']:.1%} by the largest class, {facts['majority_class']}; "
            f"log-loss {facts['baseline_log_loss']:.3f} by the shares of the classes",
        ),
    ]
    if facts.get("unlabelled", {}).get("rows"):
        lines.append(("unlabelled", unlabelled_line(facts["unlabelled"])))
    if "search" in facts:
        tried = facts["search"]["candidates"]
        best = dict(tried[facts["search"]["chosen"]])
        del best["log_loss"], best["accuracy"]
        chosen = ", ".join(f"{name} {value}" for name, value in best.items())
        lines.append(("chosen", f"{chosen}; best of {counted(len(tried), 'model')}"))
    if facts["held_out_accuracy"] is not None:
        accuracy, error = facts["held_out_accuracy"], facts["held_out_standard_error"]
        baseline = f"baseline {facts['majority_accuracy']:.1%}"
        lines.append(("accuracy", f"{accuracy:.1%} ± {error:.1%} on held-out folds ({baseline})"))
    raw = facts["uncalibrated_log_loss"]
    compared = [] if raw is None else [f"{raw:.3f} uncalibrated"]
    compared.append(f"baseline {facts['baseline_log_loss']:.3f}")
    line = calibration_line(facts["evidence"], facts["held_out_log_loss"], ", ".join(compared))
    lines.append(("calibration", line))
    if facts["compiled_functions"]:
        later = "find them" if facts["compiled_is_kept"] else "compile again"
        told = f"{counted(facts['compiled_functions'], 'function')} in {facts['compiled_seconds']:.1f} s"
        lines.append(("compiled", f"{told}; later runs {later}"))
    lines.append(("model", f"{facts['model']}, {size_of(facts['bytes'])}, in {facts['seconds']:.1f} s"))
    say_facts(lines)


def _small_classes(counts: dict[str, int]) -> list[tuple[str, str]]:
    """Return a line about classes of few rows, if there are any."""
    if not counts:
        return []
    told = _some([f"{label} ({rows})" for label, rows in counts.items()])
    which = "1 class has" if len(counts) == 1 else f"{len(counts)} classes have"
    return [("few rows", f"{which} fewer than {FEW_ROWS} rows: {told}")]


def _family_summary(facts: dict[str, Any]) -> str:
    if len(facts["families"]) == 1:
        kind = "joint " if facts["structure"] == "joint" else ""
        return f"{kind}{facts['family']} densities"
    return ", ".join(f"{n:,} {name}" for name, n in facts["families_selected"].items())


def moments_note(output: Path) -> str:
    """Return how much of a file its moments take, as text."""
    from maxdisc.model_file.persistence import describe

    facts = describe(output)
    tensors = facts["tensors"].items()
    n_bytes = sum(tensor["bytes"] for name, tensor in tensors if "moments" in name)
    return f"--keep-moments: the moments take {size_of(n_bytes)} of the file's {size_of(facts['bytes'])}"


def note_roles(roles: Roles, rows: Described, speech: Speech) -> None:
    """Show what was guessed, and what was left out."""
    from maxdisc.cli.labelled import classes_among
    from maxdisc.files import summary
    from maxdisc.files.cells import MISSING

    if roles.guessed:
        parts = [f"label: {roles.label} ({len(classes_among(rows))} classes)"]
        flags = ["--label"] if "label" in roles.guessed else []
        if roles.text is not None:
            parts.append(f"text: {roles.text}")
            flags += ["--text"] if "text" in roles.guessed else []
        elif roles.features:
            parts.append(f"features: {_some(roles.features)}")
            flags += ["--features"] if "features" in roles.guessed else []
        speech.note(", ".join(parts) + "; change with " + ", ".join(flags))
    lost = sorted(label for label in classes_among(rows) if label.lower() in MISSING)
    if lost:
        speech.note(
            f"{lost[0]!r} is taken for a class of its own; if it means that there is no label, say "
            f"--unlabelled {lost[0]!r}"
        )
    if read := summary(roles.readings):
        speech.note(read)
    for reason in dict.fromkeys(reason for _, reason in roles.left_out):
        names = [name for name, why in roles.left_out if why == reason]
        why = (
            reason
            if len(names) == 1
            else reason.replace("it holds", "they hold").replace("it numbers", "they number")
        )
        speech.note(f"left out: {_some(names)} ({why})")


def _some(names: Any, shown: int = 5) -> str:
    names = list(names)
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(names[:shown]) + more
