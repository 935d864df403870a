"""Refusals of requests: a status and one line that says what is wrong and what to do."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

# Longer texts of an error would say no more.
_LONGEST = 300


class RefusedError(Exception):
    """Refusal of a request, with a status, one line and optional headers."""

    def __init__(self, status: int, told: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(told)
        self.status, self.told, self.headers = status, told, dict(headers or {})

    def answer(self) -> Response:
        """Return the refusal as a response."""
        return answered({"error": one_line(self.told)}, self.status, self.headers)


def busy(told: str, seconds: float = 1.0) -> RefusedError:
    """Return the refusal of a busy service, with Retry-After."""
    return RefusedError(503, told, {"Retry-After": str(max(1, math.ceil(seconds)))})


def one_line(told: str) -> str:
    """Return a message on one line, of bounded length."""
    words = " ".join(told.split())
    return words if len(words) <= _LONGEST else f"{words[: _LONGEST - 3]}..."


def answered(said: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return an answer in JSON that any parser takes: ASCII, and no NaN."""
    content = json.dumps(said, allow_nan=False, separators=(",", ":")).encode("ascii")
    return Response(content, status, dict(headers or {}), "application/json")
