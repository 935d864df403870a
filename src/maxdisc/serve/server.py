"""The server: listens, has no patience with those who send slowly, and ends when it is told to."""

from __future__ import annotations

import asyncio
import errno
import json
import signal
import socket
import sys
from types import FrameType
from typing import Any, ClassVar

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from maxdisc.serve.app import app_of
from maxdisc.serve.limits import Limits
from maxdisc.serve.logs import ServerMessages
from maxdisc.serve.service import Service

_SWITCH_SECONDS = 0.001


def run(service: Service, host: str, port: int, drain_seconds: float = 1.0) -> None:
    """Serve until a signal; finish requests in flight, after ``drain_seconds`` of reporting "not ready"."""
    listener = _listening(host, port)
    # Threads that compute hold Python's lock for so long while requests wait to be read or answered.
    sys.setswitchinterval(_SWITCH_SECONDS)
    ServerMessages(service.log).listen()
    protocol = type("Protocol", (PatientProtocol,), {"limits": service.limits})
    config = uvicorn.Config(
        app_of(service),
        http=protocol,
        ws="none",
        lifespan="on",
        loop="auto",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(2 * service.limits.seconds) + 1,
    )
    server = _Server(config, service, drain_seconds)
    service.give_up = server.end
    address = listener.getsockname()
    service.log.say("listening", host=address[0], port=address[1])
    try:
        server.run(sockets=[listener])
    finally:
        listener.close()
    service.log.say("ended")
    if service.failed is not None:
        raise service.failed


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        advice = ": choose another port" if error.errno == errno.EADDRINUSE else ""
        told = f"cannot listen on {host} port {port}: {error.strerror or error}{advice}."
        raise ValueError(told) from None
    return listener


class _Server(uvicorn.Server):
    """First it is no longer ready, then it no longer listens, then it ends."""

    def __init__(self, config: uvicorn.Config, service: Service, drain_seconds: float) -> None:
        super().__init__(config)
        self._service, self._drain_seconds = service, drain_seconds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # uvicorn gives it
        """Begin to end; whoever says so twice does not want to wait."""
        if self._service.closing:
            self.force_exit = self.should_exit and sig == signal.SIGINT
            self.should_exit = True
            return
        self._service.closing = True
        self._service.log.say("ending", signal=signal.Signals(sig).name)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.should_exit = True
        else:
            loop.call_later(self._drain_seconds if self._service.shelf.loaded else 0, self.end)

    def end(self) -> None:
        """Stop listening, finish what is being answered, and end."""
        self.should_exit = True


class PatientProtocol(H11Protocol):
    """HTTP by uvicorn, for so many connections, with so much patience."""

    limits: ClassVar[Limits]

    def connection_made(self, transport: Any) -> None:
        """Wait for a request, or refuse to."""
        super().connection_made(transport)
        # Whatever is not taken at once is waited for no longer than all else.
        transport.set_write_buffer_limits(high=0)
        self._deadline: asyncio.TimerHandle | None = None
        self._stuck: asyncio.TimerHandle | None = None
        if len(self.connections) > self.limits.connections:
            self._close_with(
                503, "too many connections are open: ask again in a moment.", "Retry-After: 1\r\n"
            )
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing is waited for any more."""
        super().connection_lost(exc)
        _cancel(self._deadline)
        _cancel(self._stuck)

    def data_received(self, data: bytes) -> None:
        """Go on with a request."""
        if not self.transport.is_closing():
            super().data_received(data)
            self._look()

    def on_response_complete(self) -> None:
        """Look whether the next request has begun."""
        super().on_response_complete()
        self._look()

    def send_400_response(self, msg: str) -> None:
        """What is no HTTP gets an answer all the same."""
        self._close_with(400, msg)

    def pause_writing(self) -> None:
        """Nobody takes the answer: not for ever."""
        super().pause_writing()
        _cancel(self._stuck)
        self._stuck = self.loop.call_later(self.limits.seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The answer is taken."""
        super().resume_writing()
        _cancel(self._stuck)

    def _look(self) -> None:
        """Bodies have their own time; here it is heads, and bodies that nobody wants any more."""
        answering = self.cycle is not None and not self.cycle.response_complete
        if answering or (self.timeout_keep_alive_task is not None and not self.conn.trailing_data[0]):
            _cancel(self._deadline)
            self._deadline = None
        elif self._deadline is None and not self.transport.is_closing():
            self._wait()

    def _wait(self) -> None:
        self._deadline = self.loop.call_later(self.limits.seconds, self._too_late)

    def _too_late(self) -> None:
        self._deadline = None
        # Whoever has an answer already, or has asked nothing again, is not told a second time.
        begun = self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]
        if self.cycle is None or begun:
            self._close_with(408, f"the request did not arrive within {self.limits.seconds:g} seconds.")
        else:
            self.transport.close()

    def _close_with(self, status: int, told: str, more: str = "") -> None:
        """Say why, if nothing else was said, and close."""
        if self.transport.is_closing():
            return
        if self.cycle is None or self.cycle.response_complete:
            body = json.dumps({"error": told})
            head = f"HTTP/1.1 {status} Refused\r\nContent-Type: application/json\r\n{more}"
            self.transport.write(
                f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode()
            )
        self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
