"""Connections: how many there may be, how long each is waited for, and which one is closed first."""

from __future__ import annotations

import asyncio
import json
import sys
from enum import Enum
from typing import Any, ClassVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from maxdisc.serve.guard import LAST, SPARE
from maxdisc.serve.service import Service
from maxdisc.serve.strict_http import StrictConnection, reason

#: Places beyond ``Limits.connections``, for asking whether the service is ready.
SPARE_PLACES = 8
# Above this share of the places, an answer is the last one of its connection.
_CROWDED = 0.75
_FULL = "too many connections are open: ask again in a moment."


class _Waits(Enum):
    """What a client keeps the service waiting for."""

    REQUEST = "a request"
    HEAD = "the rest of a head"
    BODY = "more of a body"
    READER = "room for more of an answer"


_BEGUN = (_Waits.BODY, _Waits.READER)
# A connection that is younger, or whose answer is, may be about to send a request.
_FRESH_SECONDS = 1.0


class PatientProtocol(H11Protocol):
    """HTTP by uvicorn, read strictly, with a bounded number of connections and bounded patience."""

    service: ClassVar[Service]

    def connection_made(self, transport: Any) -> None:
        """Wait for a request; close another connection, or this one, if there are too many."""
        super().connection_made(transport)
        # Whatever is not taken at once is waited for no longer than all else.
        transport.set_write_buffer_limits(high=0)
        self.conn = StrictConnection()
        self.limits = self.service.limits
        self.timeout_keep_alive = self.limits.idle  # type: ignore[assignment]  # any number of seconds does
        self._lifespan_state = self.app_state
        self._deadline: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        self._since, self._ended, self._spare = self.loop.time(), False, False
        if len(self.connections) > self.limits.connections:
            self._make_room()
            above = len(self.connections) - self.limits.connections
            self._spare = above > 0
            if above > SPARE_PLACES:
                self._give_up("full", 503, _FULL)
                return
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting for the client."""
        super().connection_lost(exc)
        _cancel(self._deadline)
        _cancel(self._stuck)

    def data_received(self, data: bytes) -> None:
        """Continue with a request."""
        # What comes after the last request of a connection is no request.
        if self.transport.is_closing() or self.conn.their_state is h11.MUST_CLOSE:
            return
        before = self._waits
        super().data_received(data)
        if self._waits is not before or before is _Waits.BODY:
            self._since = self.loop.time()
        self._look()

    def handle_events(self) -> None:
        """Read what has come, without an empty line before a request."""
        rest = self.conn.trailing_data[0]
        if self.conn.their_state is h11.IDLE and rest.startswith(b"\r\n"):
            self.conn = StrictConnection()
            if rest := rest[2:]:
                self.conn.receive_data(rest)
        above = len(self.connections) > self.limits.connections
        self.app_state = {**self._lifespan_state, LAST: self._is_last, SPARE: self._spare and above}
        super().handle_events()

    def eof_received(self) -> bool | None:  # type: ignore[override]  # uvicorn's closes at once
        """Answer what was asked before the client ended its side; refuse what is cut off."""
        self._ended = True
        if self._waits in (_Waits.HEAD, _Waits.BODY):
            self._give_up("malformed", 400, "the connection was ended before all of the request was there.")
            return None
        return self._answering

    def on_response_complete(self) -> None:
        """Look whether the next request has begun."""
        super().on_response_complete()
        self._since = self.loop.time()
        if self._ended and not self._answering:
            self.transport.close()
        self._look()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  # uvicorn says the same of all
        """Refuse an invalid HTTP request."""
        self._give_up("malformed", *reason(sys.exc_info()[1]))

    def pause_writing(self) -> None:
        """Start waiting for the client to read the answer."""
        super().pause_writing()
        self._since = self.loop.time()
        _cancel(self._stuck)
        self._stuck = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Stop waiting: the answer was read."""
        super().resume_writing()
        self._since = self.loop.time()
        _cancel(self._stuck)

    def _is_last(self) -> bool:
        """Return whether an answer ends its connection: the limit is near, and no request is pending."""
        return len(self.connections) > _CROWDED * self.limits.connections and not self.conn.trailing_data[0]

    @property
    def _answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _waits(self) -> _Waits | None:
        """What the client keeps the service waiting for; None while the service is at work."""
        if self.flow.write_paused:
            return _Waits.READER
        if not self._answering:
            return _Waits.HEAD if self.conn.trailing_data[0] else _Waits.REQUEST
        return _Waits.BODY if self.cycle.more_body and not self.flow.read_paused else None

    def _make_room(self) -> None:
        """Close a connection that waits for its client, an idle one if possible.

        If all idle ones are recent, and fewer than those in the middle of a request or an answer, one of the
        latter is closed, because they could otherwise take all connections.
        """
        idle: list[PatientProtocol] = []
        begun: list[PatientProtocol] = []
        for each in self.connections:
            if isinstance(each, PatientProtocol) and each is not self and (waits := each._waits) is not None:
                (begun if waits in _BEGUN else idle).append(each)
        idle.sort(key=_waiting_since)
        begun.sort(key=_waiting_since)
        is_idle = bool(idle) and self.loop.time() - idle[0]._since > _FRESH_SECONDS
        longest = idle if is_idle or len(idle) >= len(begun) else begun
        if longest:
            longest[0]._leave()

    def _leave(self) -> None:
        """Make room for another connection."""
        waits = self._waits
        if waits in (_Waits.HEAD, _Waits.BODY):
            self._give_up("room", 503, _FULL)
            return
        self._count("room")
        self.connections.discard(self)
        if waits is _Waits.READER:
            self.transport.abort()
        else:
            self.transport.close()

    def _look(self) -> None:
        """Check the time of heads and of bodies that are no longer needed; others have their own limit."""
        if self._answering or (self.timeout_keep_alive_task is not None and not self.conn.trailing_data[0]):
            _cancel(self._deadline)
            self._deadline = None
        elif self._deadline is None and not self.transport.is_closing():
            self._wait()

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.limits.seconds, self._too_late)

    def _too_late(self) -> None:
        self._deadline = None
        # Whoever has an answer already, and has asked nothing again, is not told anything.
        if self.cycle is None or self._waits is _Waits.HEAD:
            told = f"the request did not arrive within {self.limits.seconds:g} seconds."
            self._give_up("slow", 408, told)
        else:
            self.transport.close()

    def _give_up(self, why: str, status: int, told: str) -> None:
        """Send the reason, if no part of an answer was sent yet, and close."""
        if self.transport.is_closing():
            return
        self._count(why)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = json.dumps({"error": told})
            more = "Retry-After: 1\r\n" if status == 503 else ""
            head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n{more}"
            self.transport.write(
                f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
            )
        if self._answering:
            # An answer in progress has no client any more.
            self.cycle.disconnected = True
            self.cycle.message_event.set()
        self.connections.discard(self)
        self.transport.close()

    def _count(self, why: str) -> None:
        self.service.metrics.add("maxdisc_connections_closed_total", why=why)


def _waiting_since(connection: PatientProtocol) -> float:
    return connection._since


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
