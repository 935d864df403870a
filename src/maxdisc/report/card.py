"""A model card: what a model file holds, how well it did on held-out rows, and what it is not for."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.inspection.model_view import ModelView
from maxdisc.inspection.printed_numbers import DASH, MINUS, percent
from maxdisc.inspection.ranking import RankingTable, ranking_table
from maxdisc.inspection.safe_text import counted, shortened, visible
from maxdisc.report.markdown import plain, table
from maxdisc.report.settings import settings_of

# How much is shown: features of each class, characters of a name and of a list of files.
FEATURES = 8
_LABEL, _FILES = 40, 400
#: Classes with a smaller share than this are named as rare.
RARE = 0.02
#: Fewer rows than this say little.
FEW_ROWS = 100


@dataclass(frozen=True)
class ModelFile:
    """What a card says of the file itself."""

    name: str
    bytes: str
    written: str
    sha256: str
    #: The version of maxdisc that wrote it.
    version: str
    format: int


def model_card(fitted: ModelView, about: Mapping[str, Any], file: ModelFile) -> str:
    """Return the card as Markdown; ``about`` is what the file remembers of its data."""
    return "\n\n".join([
        f"# Model card: {plain(file.name)}",
        *_note(about),
        "## File",
        table(("", ""), _file_rows(file)),
        "## Data",
        table(("", ""), _data_rows(fitted, about)),
        "## Held-out performance",
        *_performance(fitted),
        "## Classes",
        _classes(fitted),
        "## Limits",
        "\n".join(f"- {plain(sentence)}" for sentence in _limits(fitted, about)),
        "## Settings",
        table(("", ""), settings_of(fitted).items()),
    ]) + "\n"  # fmt: skip


def card_facts(fitted: ModelView, about: Mapping[str, Any], file: ModelFile) -> dict[str, str]:
    """Return the facts of a card by name, for the metadata of other formats."""
    facts = {
        "model_file": file.name,
        "model_file_sha256": file.sha256,
        "version": file.version,
        "classes": str(len(fitted.classes)),
        "features_selected": f"{fitted.classifier.n_selected_} of {fitted.classifier.n_features_in_}",
    }
    found, baseline = fitted.held_out, fitted.majority
    if found is not None and np.isfinite(found.accuracy):
        facts |= {"held_out_accuracy": f"{found.accuracy:.4f}", "held_out_log_loss": f"{found.log_loss:.4f}"}
    if baseline is not None:
        facts["majority_accuracy"] = f"{baseline[1].accuracy:.4f}"
    facts |= {name: visible(about[name]) for name in ("rows", "label", "text") if name in about}
    if "sources" in about:
        facts["sources"] = visible(", ".join(about["sources"]))
    if "note" in about:
        facts["note"] = "\n".join(map(visible, about["note"].splitlines()))
    return facts


def _note(about: Mapping[str, Any]) -> list[str]:
    """Return the lines of the note as paragraphs; it is text, not Markdown, as anyone may have written it."""
    return [plain(line) for line in about.get("note", "").splitlines() if line.strip()]


def _file_rows(file: ModelFile) -> list[tuple[str, str]]:
    return [
        ("name", file.name),
        ("size", file.bytes),
        ("last written", file.written),
        ("SHA-256", file.sha256),
        ("format", f"{file.format}, written by maxdisc {file.version}"),
    ]


def _data_rows(fitted: ModelView, about: Mapping[str, Any]) -> list[tuple[str, str]]:
    counts = fitted.family_counts
    rows = [
        ("training rows", f"{about['rows']:,}" if "rows" in about else "not recorded"),
        ("files", shortened(", ".join(about.get("sources", [])), _FILES) or "not recorded"),
    ]
    rows += [(f"{role} column", about[role]) for role in ("label", "text") if role in about]
    classifier = fitted.classifier
    return [
        *rows,
        ("features", f"{classifier.n_features_in_:,}, of which {classifier.n_selected_:,} were selected"),
        ("densities", ", ".join(f"{name} ({n:,})" for name, n in counts.items())),
        ("structure", "independent features" if classifier.joint_ is None else "joint densities"),
        ("evidence", fitted.evidence_kind),
    ]


def _performance(fitted: ModelView) -> list[str]:
    found, baseline = fitted.held_out, fitted.majority
    if found is None or not np.isfinite(found.accuracy):
        return ["No rows were held out: evaluate the model with `maxdisc evaluate` on labelled rows."]
    rows = [("this model", percent(found.accuracy), f"{found.log_loss:.4f}")]
    if baseline is not None:
        label, other = baseline
        name = f"always {shortened(label, _LABEL)}; class shares as probabilities"
        rows.append((name, percent(other.accuracy), f"{other.log_loss:.4f}"))
    n_rows = round(getattr(fitted.classifier.evidence_, "n_rows", 0))
    words = f"On {counted(n_rows, 'held-out training row')}:" if n_rows else "On held-out training rows:"
    return [words, table(("", "accuracy", "log-loss (nats)"), rows)]


def _classes(fitted: ModelView) -> str:
    shares = fitted.classifier.class_prior_.tolist()
    labels = fitted.classifier.classes_.tolist()
    told: RankingTable | None = None
    # A file of an early version has no moments.
    with suppress(NotFittedError):
        told = ranking_table(fitted, n=1, per_class=FEATURES)
    rows = [
        (shortened(name, _LABEL), percent(share), DASH if told is None else _signs(told, label) or DASH)
        for label, name, share in zip(labels, fitted.classes, shares, strict=True)
    ]
    return table(("class", "share", f"distinctive features ({MINUS}: less of it)"), rows)


def _signs(told: RankingTable, label: Any) -> str:
    signs = told.of_class(label, FEATURES)
    return ", ".join(f"{MINUS if sign < 0 else ''}{shortened(by, _LABEL)}" for by, sign, _ in signs)


def _limits(fitted: ModelView, about: Mapping[str, Any]) -> list[str]:
    """Return what a user of the model should know before relying on it."""
    learnt: FittedModel = fitted.classifier._learnt
    n_classes = len(fitted.classes)
    limits = [
        f"It knows {counted(n_classes, 'class', 'classes')}, and predicts one of them for every row. "
        + (
            "maxdisc predict --unknown marks rows that fit none."
            if learnt.novelty is not None
            else "It cannot detect rows that fit none."
        ),
        "The held-out figures are for rows like the training data; evaluate the model on other data with "
        "maxdisc evaluate.",
    ]
    if about.get("rows", FEW_ROWS) < FEW_ROWS:
        limits.append(f"It was fitted on {counted(about['rows'], 'row')}, which is few.")
    shares = zip(fitted.classifier.class_prior_.tolist(), fitted.classes, strict=True)
    rare = [name for share, name in sorted(shares) if share < RARE]
    if rare:
        named = ", ".join(shortened(name, _LABEL) for name in rare[:5])
        more = f" and {len(rare) - 5:,} more" if len(rare) > 5 else ""
        counts = counted(len(rare), "class has", "classes have")
        limits.append(f"{counts} less than {percent(RARE)} of the rows: {named}{more}.")
    if fitted.evidence_kind == "raw":
        limits.append(
            "Its probabilities are not calibrated: features are treated as independent, so it is "
            "overconfident."
        )
    if fitted.before is not None:
        limits.append("Words that no training document had are ignored.")
    elif fitted.schema is not None and len(fitted.schema.categories):
        limits.append("Categories that no training row had, and missing cells, carry no evidence.")
    else:
        limits.append(
            "Missing cells carry no evidence. Values beyond those of the training rows are extrapolated."
        )
    return limits
