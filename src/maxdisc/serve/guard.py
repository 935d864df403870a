"""Middleware for every request: token, response headers, log and metrics."""

from __future__ import annotations

import hmac
import time
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from maxdisc.serve.hosts import is_for_loopback
from maxdisc.serve.refusals import RefusedError, answered, busy
from maxdisc.serve.service import Service

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
]
_STATES = ("/healthz", "/readyz")
#: Paths of pages, which need no token and may be cached.
_PAGES = ("/", "/docs")
_OPEN = (*_PAGES, *_STATES)
_SHOWN = 80
#: Key in the state of a request for additional fields of its log line.
FACTS = "maxdisc"
#: In the state of a request: says whether the answer is the last one of its connection, ...
LAST = "maxdisc.last"
#: ... and whether it came when all places were taken, and may ask for the state of the service alone.
SPARE = "maxdisc.spare"


class Guard:
    """ASGI middleware: authorization, host check, log and metrics."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self._app, self._service = app, service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        facts: dict[str, Any] = {}
        scope[FACTS] = facts

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message["headers"],
                    *_HEADERS,
                    *self._fresh(scope),
                    *self._closing(scope),
                ]
            await send(message)

        try:
            await self._admitted(scope, receive, sending)
        except Exception as error:
            self._service.log.defect(error, path=scope["path"][:_SHOWN])
            if not status:
                refusal = answered({"error": "a defect of this service; its log says where."}, 500)
                await refusal(scope, receive, sending)
        finally:
            self._service.bodies.give_back(scope)
            self._note(scope, status, time.perf_counter() - began, facts)

    async def _admitted(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("state", {}).get(SPARE) and scope["path"] not in _STATES:
            refusal = busy("too many connections are open: ask again in a moment.")
            await refusal.answer()(scope, receive, send)
            return
        if self._service.own_names_only and not is_for_loopback(scope["headers"]):
            told = (
                "this service is for this machine, and the request names another host: ask 127.0.0.1, or "
                "start the service with MAXDISC_TOKEN or --no-token."
            )
            await RefusedError(421, told).answer()(scope, receive, send)
            return
        if self._service.token and not self._open(scope["path"]) and not self._bears_token(scope):
            told = "this needs a token: send the header Authorization: Bearer TOKEN."
            refusal = RefusedError(401, told, {"WWW-Authenticate": "Bearer"})
            await refusal.answer()(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _open(self, path: str) -> bool:
        return path in _OPEN or path.startswith("/static/")

    def _bears_token(self, scope: Scope) -> bool:
        given = b"".join(value for name, value in scope["headers"] if name == b"authorization")
        kind, _, token = given.partition(b" ")
        wanted = (self._service.token or "").encode()
        # In constant time, to prevent timing attacks.
        return hmac.compare_digest(token.strip(), wanted) and kind.lower() == b"bearer"

    @staticmethod
    def _fresh(scope: Scope) -> list[tuple[bytes, bytes]]:
        # Files of the page may be cached with revalidation; answers may not.
        still = scope["path"] in _PAGES or scope["path"].startswith("/static/")
        return [(b"cache-control", b"no-cache" if still else b"no-store")]

    @staticmethod
    def _closing(scope: Scope) -> list[tuple[bytes, bytes]]:
        # Whoever waits to be told to send a body may send it or not once it is refused: what comes next could
        # be taken for a body, or for a request.
        expects = any(name == b"expect" for name, _ in scope["headers"])
        is_last = scope.get("state", {}).get(LAST)
        return [(b"connection", b"close")] if expects or (is_last is not None and is_last()) else []

    def _note(self, scope: Scope, status: int, seconds: float, facts: dict[str, Any]) -> None:
        service, path = self._service, route_of(scope)
        service.metrics.add("maxdisc_requests_total", path=path, status=str(status))
        service.metrics.took(path, seconds)
        service.log.request(
            method=scope["method"][:_SHOWN],
            path=scope["path"][:_SHOWN],
            status=status,
            ms=round(seconds * 1000, 2),
            rows=facts.get("rows"),
            model=facts.get("model"),
        )


def route_of(scope: Scope) -> str:
    """Return the path of a known route; all others share one name."""
    route = scope.get("route")
    path = getattr(route, "path", None)
    if isinstance(path, str):
        return path
    return "/static" if scope["path"].startswith("/static/") else "other"
