"""Responses of a model, as plain data: predictions, explanations and descriptions."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import numpy as np

from maxdisc.files import nearest
from maxdisc.inspection.curves import DensityCurves, density_curves
from maxdisc.inspection.model_input import Predictions
from maxdisc.inspection.odds import FeatureOdds, feature_odds
from maxdisc.numerics.matrices import Integers
from maxdisc.numerics.threads import limited_threads
from maxdisc.report.settings import settings_of
from maxdisc.serve.bodies import ExplainBody, PredictBody
from maxdisc.serve.limits import Limits
from maxdisc.serve.metrics import Tally
from maxdisc.serve.refusals import RefusedError
from maxdisc.serve.served_model import ServedModel

#: Limits on the probabilities of a response and on the length of explained texts.
MOST_SHARES = 200_000
MOST_CHARACTERS = 1_000_000
#: Limit on the cells of a table, including missing ones, to bound memory.
MOST_CELLS = 2_000_000
#: Answers of no more probabilities are computed where requests are read; ...
LITTLE = 2000
#: ... a column of a table takes as long as this many of them.
DEARER = 20
# JSON has no infinity; larger odds are indistinguishable anyway.
_FARTHEST = 1e300
# Number of levels of a category that are returned.
_LEVELS = 1000


def takes_little(model: ServedModel, body: PredictBody) -> bool:
    """Return whether an answer takes a millisecond or two: few rows, of few columns, among few classes."""
    n_columns = 0 if model.text is not None else int(model.classifier.n_features_in_)
    n_rows = len(body.texts or body.rows or [])
    return n_rows * max(DEARER * n_columns, len(model.classes)) <= LITTLE


def require_few_cells(n_rows: int, n_columns: int) -> None:
    """Refuse rows that would take too much memory as a table."""
    if n_rows * n_columns > MOST_CELLS:
        told = (
            f"{n_rows:,} rows of {n_columns:,} columns are too much at once: send {MOST_CELLS // n_columns:,}"
        )
        raise RefusedError(413, f"{told} rows at most.")


def predicted(model: ServedModel, body: PredictBody, limits: Limits) -> tuple[dict[str, Any], Tally]:
    """Return the classes of some documents or rows, and statistics of them."""
    raw = _given(model, body.texts, body.rows, limits)
    top = len(model.classes) if body.top == 0 else min(body.top, len(model.classes))
    n_rows = len(body.texts or body.rows or [])
    if top * n_rows > MOST_SHARES:
        told = f"{top:,} classes of {n_rows:,} rows are too much for one answer: ask for fewer of either."
        raise RefusedError(413, told)
    said = _said(model, raw)
    p_values = novelty_of(model, said, body.unknown is not None)
    strange = [p is not None and body.unknown is not None and p <= body.unknown for p in p_values]
    best = _best(said, top)
    probability = np.exp(np.take_along_axis(said.log_probability, best, axis=1)).tolist()
    predictions = []
    for at, shares, p, is_strange in zip(best.tolist(), probability, p_values, strange, strict=True):
        classes = [{"label": model.classes[c], "probability": q} for c, q in zip(at, shares, strict=True)]
        predictions.append({**classes[0], "classes": classes, "novelty": p, "unknown": is_strange})
    tally = Tally()
    tally.add(model, raw, said.label(said.first), sum(strange))
    return {"model": model.name, "predictions": predictions}, tally


def explained(model: ServedModel, body: ExplainBody, limits: Limits) -> dict[str, Any]:
    """Explain one class of a document or row against another."""
    if body.text is not None and len(body.text) > MOST_CHARACTERS:
        raise RefusedError(413, f"the text is longer than {MOST_CHARACTERS:,} characters: send a part of it.")
    texts = None if body.text is None else [body.text]
    rows = None if body.row is None else [body.row]
    raw = _given(model, texts, rows, limits, one=True)
    said = _said(model, raw)
    first, second = (_label(model, label) for label in (body.first, body.second))
    try:
        with limited_threads(1):
            odds = feature_odds(model.fitted, said.X, first, second)
            odds = replace(odds, odds=np.clip(np.nan_to_num(odds.odds), -_FARTHEST, _FARTHEST))
    except ValueError as error:
        raise RefusedError(422, str(error)) from None
    best = _best(said, len(model.classes))[0]
    classes = [
        {"label": model.classes[c], "probability": p}
        for c, p in zip(best.tolist(), np.exp(said.log_probability[0, best]).tolist(), strict=True)
    ]
    order = np.argsort(-np.abs(odds.odds), kind="stable")
    shown, rest = order[: body.n], float(odds.odds[order[body.n :]].sum())
    columns = odds.columns[shown]
    names = [str(name) for name in model.fitted.names[columns]]
    terms = [] if body.text is None else model.vectorizer.spans(body.text)
    counts = Counter(term for term, _, _ in terms)
    # For a word, its count is easier to read than the scaled count that the model uses.
    is_text = model.text is not None
    values = [counts[name] for name in names] if is_text else model.fitted.values(said.X, columns)[0]
    features = [
        {"name": name, "value": _plain(value), "odds": each}
        for name, value, each in zip(names, values, odds.odds[shown].tolist(), strict=True)
    ]
    return {
        "model": model.name,
        **classes[0],
        "classes": classes,
        "first": model.classes[odds.first],
        "second": model.classes[odds.second],
        "total": odds.prior + sum(each["odds"] for each in features) + rest,
        "prior": odds.prior,
        "rest": rest,
        "features": features,
        "spans": _spans(model, body.text or "", terms, odds),
    }


def _given(
    model: ServedModel,
    texts: list[str] | None,
    rows: list[dict[str, Any]] | None,
    limits: Limits,
    one: bool = False,
) -> Any:
    """Return the input of the model from a body."""
    wanted, other = ("text", "row") if one else ("texts", "rows")
    if model.text is None:
        wanted, other = other, wanted
    given, extra = (texts, rows) if model.text is not None else (rows, texts)
    if given is None or extra is not None:
        has = f"not {other!r}" if extra is not None else "which the body lacks"
        raise RefusedError(
            422, f"model {model.name!r} is of kind {model.kind!r}: it takes {wanted!r}, {has}."
        )
    if len(given) > limits.batch:
        raise RefusedError(
            413,
            f"{len(given):,} {wanted} at once are too many: send at most {limits.batch:,} in one request.",
        )
    if model.text is not None:
        return given
    if not model.table.sparse:
        require_few_cells(len(given), len(model.table.names))
    return model.table.taken(rows or [])


def _said(model: ServedModel, raw: Any) -> Predictions:
    """Return the predictions; refuse input that the model does not accept."""
    try:
        with limited_threads(1):
            return model.said(raw)
    except ValueError as error:
        raise RefusedError(422, str(error)) from None


def novelty_of(model: ServedModel, said: Predictions, wanted: bool = False) -> list[float | None]:
    """Return p-values of belonging to a known class; None, or a refusal if required, without them."""
    if model.classifier._learnt.novelty is None:
        if wanted:
            raise RefusedError(
                422,
                f"model {model.name!r} has no p-values for unknown rows: leave out "
                "'unknown', or fit it with calibrated evidence.",
            )
        return [None] * len(said)
    with limited_threads(1):
        return list(model.novelty(said).tolist())


def _best(said: Predictions, top: int) -> Integers:
    """Return the positions of the most probable classes of each row; ties go to the first class."""
    return np.argsort(-said.log_probability, axis=1, kind="stable")[:, :top]


def _label(model: ServedModel, label: str | None) -> Any:
    """Return a class as the model knows it."""
    if label is None:
        return None
    if label not in model.classes:
        raise RefusedError(422, f"there is no class {label[:60]!r}{nearest(label[:60], model.classes)}")
    return model.classifier.classes_[model.classes.index(label)]


def _plain(value: float | str) -> float | str | None:
    return value if isinstance(value, str) or math.isfinite(value) else None


def _spans(
    model: ServedModel, text: str, terms: list[tuple[str, int, int]], odds: FeatureOdds
) -> list[dict[str, Any]]:
    """Return every term of the document with evidence, by its position in UTF-16 code units."""
    loud = {
        int(column): each for column, each in zip(odds.columns, odds.odds.tolist(), strict=True) if each != 0
    }
    found = []
    for term, start, end in terms:
        column = model.places.get(term)
        if column in loud and start < end:
            found.append((start, end, term, loud[column]))
    found.sort(key=lambda span: (span[0], -span[1]))
    place = _utf16(text)
    return [
        {"start": place(start), "end": place(end), "feature": term, "odds": each}
        for start, end, term, each in found
    ]


def _utf16(text: str) -> Any:
    """Convert positions in a text to UTF-16 code units, in which JavaScript counts."""
    if text.isascii() or max(text) < "\U00010000":
        return int
    wide = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32) >= 0x10000
    before = np.r_[0, np.cumsum(wide)]
    return lambda at: int(at + before[at])


def ranking_of(model: ServedModel) -> None:
    """Rank all features; refuse if the model has no ranking."""
    try:
        with limited_threads(1):
            _ = model.ranking, model.lower_names
    except (AttributeError, ValueError) as error:
        raise RefusedError(404, f"there is no ranking: {error}") from None


def ranked(model: ServedModel, search: str, label: str | None, offset: int, limit: int) -> dict[str, Any]:
    """Return a part of the ranking, filtered by name and class."""
    table = model.ranking
    chosen = np.arange(len(table))
    if search:
        low = search.lower()
        chosen = np.array([at for at, name in enumerate(model.lower_names) if low in name], dtype=np.intp)
    if label is not None:
        wanted = _label(model, label)
        chosen = chosen[table.classes[chosen] == wanted]
    page = chosen[offset : offset + limit]
    kept = model.kept[table.columns[page]]
    features = [
        {
            "rank": rank + 1,
            "name": str(name),
            "score": _plain(score),
            "kept": is_kept,
            "class": str(each),
            "direction": direction,
            "p": _plain(p),
            "q": _plain(q),
        }
        for rank, name, score, is_kept, each, direction, p, q in zip(
            page.tolist(),
            table.features[page],
            table.scores[page].tolist(),
            kept.tolist(),
            table.classes[page].tolist(),
            table.directions[page].tolist(),
            table.trust.p[page].tolist(),
            table.trust.q[page].tolist(),
            strict=True,
        )
    ]
    return {"total": len(chosen), "features": features}


def density(model: ServedModel, feature: str) -> dict[str, Any]:
    """Return the curves of one feature, class by class, at common points."""
    column = model.places.get(feature)
    if column is None:
        raise RefusedError(
            404, f"model {model.name!r} has no feature {feature[:60]!r}: GET /ranking lists them."
        )
    try:
        (curves,) = density_curves(model.fitted, [column])
    except (AttributeError, ValueError) as error:
        raise RefusedError(404, f"there are no densities: {error}") from None
    points, values = _at_common_points(curves)
    at_zero: list[float | None] = [*curves.at_zero] or [None] * len(curves.classes)
    return {
        "feature": curves.feature,
        "kind": curves.kind,
        "points": curves.levels or points,
        "curves": [
            {"label": label, "values": heights, "at_zero": zero}
            for label, heights, zero in zip(curves.classes, values, at_zero, strict=True)
        ],
        "left_out": curves.left_out,
        "constant": None if curves.constant is None else _plain(curves.constant),
    }


def _at_common_points(curves: DensityCurves) -> tuple[list[float], list[list[float]]]:
    if not curves.x:
        return [], []
    points = np.unique(np.concatenate(curves.x))
    heights = [
        np.interp(points, x, np.nan_to_num(h, posinf=1e308))
        for x, h in zip(curves.x, curves.height, strict=True)
    ]
    return points.tolist(), [h.tolist() for h in heights]


def listed(model: ServedModel, default: bool) -> dict[str, Any]:
    """Return the entry of a model in the list of models."""
    return {"name": model.name, "kind": model.kind, "classes": model.classes, "default": default}


def described(model: ServedModel, limits: Limits) -> dict[str, Any]:
    """Return the description of a model."""
    classifier = model.classifier
    return {
        "name": model.name,
        "kind": model.kind,
        "classes": [
            {"label": label, "share": share}
            for label, share in zip(model.classes, classifier.class_prior_.tolist(), strict=True)
        ],
        "n_features": int(classifier.n_features_in_),
        "n_selected": int(classifier.n_selected_),
        "columns": _columns(model) if model.kind == "table" else [],
        "text_column": model.text,
        "settings": settings_of(model.fitted),
        "path": _path(model),
        "novelty": classifier._learnt.novelty is not None,
        "file": model.file,
        "limits": {"batch": limits.batch, "bytes": limits.bytes, "seconds": limits.seconds},
        "version": version("maxdisc"),
    }


def _columns(model: ServedModel) -> list[dict[str, Any]]:
    schema, families = model.fitted.schema, model.fitted.families
    levels: dict[int, list[str]] = {}
    if schema is not None:
        for column, name in zip(schema.levels.columns.tolist(), schema.levels.names.tolist(), strict=True):
            levels.setdefault(column, []).append(name)
    return [
        {
            "name": name,
            "kind": kind,
            "levels": levels[at][:_LEVELS] if kind == "category" and at in levels else None,
            "family": str(families[at]),
            "rank": model.ranks.get(at),
            "typical": model.typical.get(name),
        }
        for at, (name, kind) in enumerate(zip(model.table.names, model.table.kinds, strict=True))
    ]


def _path(model: ServedModel) -> dict[str, Any] | None:
    path = model.classifier.path_
    if path is None:
        return None
    return {
        "sizes": path.sizes.tolist(),
        "accuracy": path.mean_accuracy.tolist(),
        "standard_error": [_plain(each) for each in path.standard_error.tolist()],
        "chosen": int(model.classifier.n_selected_),
    }
