"""Strict parsing of HTTP/1.1: requests that two parsers could read differently are refused."""

from __future__ import annotations

import re
from typing import Any

import h11

#: Limits on the bytes and headers of a head.
MOST_HEAD_BYTES = 2**14
MOST_HEADERS = 100
# A line that ends without CR, or goes on in the next. h11 refuses a CR alone and NUL.
_LOOSE_LINES = re.compile(rb"(?<!\r)\n|\n[ \t]")
_ABSOLUTE = re.compile(rb"https?://(?P<host>[^/?]+)(?P<rest>.*)", re.IGNORECASE)
# What h11 quotes of a request is not sent back.
_QUOTED = re.compile(r": (?:bytearray\()?b['\"].*", re.DOTALL)


class StrictConnection(h11.Connection):
    """Server side of a connection that refuses ambiguous requests."""

    def __init__(self) -> None:
        super().__init__(h11.SERVER, MOST_HEAD_BYTES)

    def next_event(self) -> Any:
        """Return the next event; raise ``h11.RemoteProtocolError`` for a request that is not sound."""
        before = self.trailing_data[0] if self.their_state is h11.IDLE else b""
        event = super().next_event()
        if not isinstance(event, h11.Request):
            return event
        _require_sound(event, before[: len(before) - len(self.trailing_data[0])])
        return event if event.target.startswith(b"/") else _of_origin(event)


def reason(error: BaseException | None) -> tuple[int, str]:
    """Return the status and the line for what is wrong with a request."""
    if getattr(error, "error_status_hint", 400) == 431:
        return (
            431,
            f"the head is too long: send at most {MOST_HEAD_BYTES:,} bytes and {MOST_HEADERS} headers.",
        )
    told = _QUOTED.sub("", str(error)).rstrip(".")
    return 400, f"this is not a valid HTTP/1.1 request: {told[:1].lower()}{told[1:]}."


def _require_sound(request: h11.Request, head: bytes) -> None:
    # h11 bounds a head that is not there yet, but one that comes at once may have any length.
    if len(head) > MOST_HEAD_BYTES or len(request.headers) > MOST_HEADERS:
        raise h11.RemoteProtocolError("too long", error_status_hint=431)
    if _LOOSE_LINES.search(head):
        raise h11.RemoteProtocolError("every line of a head must end with CRLF, and none may be folded")
    if not request.http_version.startswith(b"1."):
        raise h11.RemoteProtocolError("its version must be HTTP/1.1 or HTTP/1.0")
    names = [name for name, _ in request.headers]
    if b"transfer-encoding" in names and (b"content-length" in names or request.http_version == b"1.0"):
        raise h11.RemoteProtocolError("it has Transfer-Encoding together with Content-Length or HTTP/1.0")


def _of_origin(request: h11.Request) -> h11.Request:
    """Return a request for ``http://host/path`` as one for ``/path`` whose Host is that host."""
    if request.target == b"*" and request.method == b"OPTIONS":
        return request
    found = _ABSOLUTE.fullmatch(request.target)
    if found is None:
        raise h11.RemoteProtocolError("its target must be a path, or begin with http://")
    headers = [(name, value) for name, value in request.headers if name != b"host"]
    return h11.Request(
        method=request.method,
        target=found["rest"] if found["rest"].startswith(b"/") else b"/" + found["rest"],
        headers=[(b"host", found["host"]), *headers],
        http_version=request.http_version,
    )
