"""Schemas and validation of request bodies."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from maxdisc.serve.refusals import RefusedError

Cell = float | bool | str | None
_SHOWN = 60


class _Body(BaseModel):
    # Unknown keys are errors, so that misspelt names are noticed.
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class PredictBody(_Body):
    """Documents or rows of a table to classify."""

    texts: list[str] | None = Field(None, min_length=1, description="Documents, for a model of text.")
    rows: list[dict[str, Any]] | None = Field(
        None, min_length=1, description="Rows, from columns to cells; a column that is left out is missing."
    )
    top: int = Field(3, ge=0, le=1_000_000, description="How many classes to tell of each; 0 for all.")
    unknown: float | None = Field(
        None, gt=0, lt=1, description="Call rows unknown that are stranger than all but this share."
    )


class ExplainBody(_Body):
    """One document or row, and the two classes to compare."""

    text: str | None = Field(None, description="A document, for a model of text.")
    row: dict[str, Any] | None = Field(None, description="A row, from columns to cells.")
    first: str | None = Field(None, description="The class that what is positive speaks for; else the best.")
    second: str | None = Field(None, description="The class it is weighed against; else the runner-up.")
    n: int = Field(15, ge=1, le=10_000, description="How many features to list.")


Shape = TypeVar("Shape", bound=_Body)


def parsed(shape: type[Shape], body: bytes) -> Shape:
    """Parse a request body; refuse it with the place of the first error."""
    try:
        asked = shape.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise RefusedError(422, _told(first, shape)) from None
    _KEYS.decode(body.decode())
    return asked


def _require_unique(pairs: list[tuple[str, Any]]) -> None:
    """Refuse an object with a key that occurs twice."""
    if len(dict(pairs)) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise RefusedError(422, f"the key {twice[:_SHOWN]!r} occurs twice in one object: give each key once.")


# pydantic takes the last of two values. Only the keys are looked at: numbers are left as text.
_KEYS = json.JSONDecoder(object_pairs_hook=_require_unique, parse_int=str, parse_float=str)


#: The key to use instead of that for one document or several.
_INSTEAD = {
    "text": ("texts", 'a list of documents: {"texts": ["..."]}'),
    "row": ("rows", 'a list of rows: {"rows": [{"column": 1.5}]}'),
    "texts": ("text", 'one document: {"text": "..."}'),
    "rows": ("row", 'one row: {"row": {"column": 1.5}}'),
}


def _told(error: Any, shape: type[BaseModel]) -> str:
    what = str(error["msg"])
    if error["type"] == "json_invalid":
        return f"the body is not JSON: {what.removeprefix('Invalid JSON: ')}."
    where = "".join(f"[{at}]" if isinstance(at, int) else f".{at}"[:_SHOWN] for at in error["loc"])
    if error["type"] == "extra_forbidden":
        name, keys = where.removeprefix("."), list(shape.model_fields)
        instead, what = _INSTEAD.get(name, (name, ""))
        if instead in keys:
            return f"the body has {name!r}; use {instead!r} with {what}."
        return f"the body has the unknown key {name!r}; it takes {', '.join(map(repr, keys))}."
    return f"{where.removeprefix('.') or 'the body'}: {what[:1].lower()}{what[1:]}."


def schema_of(shape: type[BaseModel], examples: list[Any]) -> dict[str, Any]:
    """Return the OpenAPI schema of a body."""
    schema = shape.model_json_schema()
    cells = {
        "type": "object",
        "additionalProperties": {
            "anyOf": [{"type": kind} for kind in ("number", "string", "boolean", "null")]
        },
    }
    for name in ("row", "rows"):
        if name in schema["properties"]:
            found = schema["properties"][name]["anyOf"][0]
            found.update({"items": cells} if name == "rows" else cells)
    return {"required": True, "content": {"application/json": {"schema": schema, "examples": {
        f"example {i}": {"value": example} for i, example in enumerate(examples, 1)}}}}  # fmt: skip
