"""Schemas of responses, for ``/openapi.json``."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class Refusal(BaseModel):
    """The reason why a request was refused."""

    error: str = Field(description="One line: what is wrong, where, and what to do.")


class ClassShare(BaseModel):
    """A class and its probability."""

    label: str
    probability: float


class Prediction(ClassShare):
    """The prediction for a document or row."""

    classes: list[ClassShare] = Field(description="The most probable classes, best first.")
    novelty: float | None = Field(description="P-value of 'belongs to a known class'.")
    unknown: bool


class PredictAnswer(BaseModel):
    """Predictions, in the order of the documents or rows."""

    model: str
    predictions: list[Prediction]


class FeatureOdds(BaseModel):
    """The log-odds of a feature; positive for the first class."""

    name: str
    value: float | str | None
    odds: float


class Span(BaseModel):
    """Position of a term in the text, in UTF-16 code units; terms of several words may overlap."""

    start: int
    end: int
    feature: str
    odds: float


class ExplainAnswer(ClassShare):
    """Explanation: total = prior + the odds of the features + rest."""

    model: str
    classes: list[ClassShare]
    first: str
    second: str
    total: float
    prior: float
    rest: float
    features: list[FeatureOdds]
    spans: list[Span]


class RankedFeature(BaseModel):
    """A feature of the ranking."""

    model_config = {"extra": "allow"}
    rank: int
    name: str
    score: float | None
    kept: bool
    p: float | None
    q: float | None


class RankingAnswer(BaseModel):
    """A part of the ranking, and the number of matching features."""

    total: int
    features: list[RankedFeature]


class Curve(BaseModel):
    """The density of a feature in one class."""

    label: str
    values: list[float]
    at_zero: float | None


class DensityAnswer(BaseModel):
    """The densities of a feature, at common points."""

    model_config = {"extra": "allow"}
    feature: str
    kind: str
    points: list[float] | list[str]
    curves: list[Curve]


class StateAnswer(BaseModel):
    """State of the service."""

    status: str
    models: list[str] | None = None


class AnyAnswer(BaseModel):
    """An object."""

    model_config = {"extra": "allow"}


_REFUSED = {
    400: "The connection was closed, or this is no HTTP.",
    401: "A token is needed.",
    404: "There is no such model or feature.",
    408: "The request came too slowly.",
    413: "It is too much at once.",
    415: "The body is of another type.",
    422: "It does not fit.",
    503: "Not now: Retry-After says when.",
}


def told(shape: type[BaseModel] | None, *statuses: int, media: str = "application/json") -> dict[Any, Any]:
    """Return the responses of a path, for OpenAPI."""
    refused = {status: {"description": _REFUSED[status], "model": Refusal} for status in statuses}
    if shape is not None:
        return {200: {"description": shape.__doc__, "model": shape}, **refused}
    text = {"description": "Text.", "content": {media: {"schema": {"type": "string"}}}}
    return {200: text, **refused}
