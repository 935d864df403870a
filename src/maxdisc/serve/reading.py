"""Reading of request bodies, with limits on type, size and time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from starlette.requests import ClientDisconnect, Request
from starlette.types import Scope

from maxdisc.serve.limits import Limits
from maxdisc.serve.refusals import RefusedError, busy

# This much of a body that is too large is still read, so that the client receives the reason.
_DRAINED = 4
#: Limit on the bytes of all bodies together, in units of the largest body.
BODIES = 16
# Where a request keeps how many bytes it holds.
_HELD = "maxdisc.held"


class Bodies:
    """Reader of request bodies, with a limit on the bytes of all requests together."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        #: Bytes of the requests that are not answered yet.
        self.held = 0

    async def read(self, request: Request, wanted: str) -> bytes:
        """Read a body of the expected media type; its bytes are released by :meth:`give_back`."""
        return await _read(request, self._limits, wanted, self._hold)

    def give_back(self, scope: Scope) -> None:
        """Release the bytes of an answered request."""
        self.held -= scope.pop(_HELD, 0)

    def _hold(self, scope: Scope, n_bytes: int) -> None:
        scope[_HELD] = scope.get(_HELD, 0) + n_bytes
        self.held += n_bytes
        if self.held > BODIES * self._limits.bytes:
            refusal = busy("the bodies of other requests are too large: ask again in a moment.")
            raise RefusedError(refusal.status, refusal.told, {**refusal.headers, "Connection": "close"})


async def _read(request: Request, limits: Limits, wanted: str, hold: Callable[[Scope, int], None]) -> bytes:
    _require_type(request, wanted)
    parts: list[bytes] = []
    n_bytes = 0
    try:
        async with asyncio.timeout(limits.seconds):
            _require_small(_declared(request), limits, _DRAINED)
            async for part in request.stream():
                n_bytes += len(part)
                _require_small(n_bytes, limits, _DRAINED)
                if n_bytes <= limits.bytes:
                    hold(request.scope, len(part))
                    parts.append(part)
                else:
                    parts.clear()
    except TimeoutError:
        told = f"the body did not arrive within {limits.seconds:g} seconds."
        raise RefusedError(408, told, {"Connection": "close"}) from None
    except ClientDisconnect:
        raise RefusedError(400, "the connection was closed before all of the body was there.") from None
    _require_small(n_bytes, limits)
    return b"".join(parts)


def _require_type(request: Request, wanted: str) -> None:
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != wanted:
        has = f"not {kind[:60]!r}" if kind else "and the request does not say what it has"
        raise RefusedError(415, f"the body must be {wanted}, {has}: send the header Content-Type: {wanted}.")
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(415, "the body is compressed: send it as it is, without Content-Encoding.")


def _declared(request: Request) -> int:
    length = request.headers.get("content-length", "0")
    return int(length) if length.isdecimal() else 0


def _require_small(n_bytes: int, limits: Limits, times: int = 1) -> None:
    if n_bytes > times * limits.bytes:
        told = f"the body is larger than {limits.bytes:,} bytes: send less at once."
        raise RefusedError(413, told, {"Connection": "close"} if times > 1 else {})
