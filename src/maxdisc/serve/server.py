"""The server: listening and graceful shutdown."""

from __future__ import annotations

import asyncio
import errno
import signal
import socket
import sys
from dataclasses import replace
from types import FrameType

import uvicorn

from maxdisc.serve.app import app_of
from maxdisc.serve.logs import ServerMessages
from maxdisc.serve.protocol import SPARE_PLACES, PatientProtocol
from maxdisc.serve.service import Service

_SWITCH_SECONDS = 0.001
# Open files besides connections: models, the log, the event loop, libraries.
_OTHER_FILES = 64


def run(service: Service, host: str, port: int, drain_seconds: float = 1.0) -> None:
    """Serve until a signal; finish requests in flight, after ``drain_seconds`` of reporting "not ready"."""
    listener = _listening(host, port)
    # Threads that compute hold Python's lock for so long while requests wait to be read or answered.
    sys.setswitchinterval(_SWITCH_SECONDS)
    ServerMessages(service.log).listen()
    _allow_files(service)
    protocol = type("Protocol", (PatientProtocol,), {"service": service})
    config = uvicorn.Config(
        app_of(service),
        http=protocol,
        ws="none",
        lifespan="on",
        loop="auto",
        log_config=None,
        access_log=False,
        server_header=False,
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


def _allow_files(service: Service) -> None:
    """Let the process open as many files as it has connections, or have fewer connections."""
    if sys.platform == "win32":
        return
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = service.limits.connections + SPARE_PLACES + _OTHER_FILES
    if soft >= needed or soft == resource.RLIM_INFINITY:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        connections = max(1, allowed - SPARE_PLACES - _OTHER_FILES)
        service.limits = replace(service.limits, connections=connections)
        service.log.say("fewer connections", connections=connections, files=allowed)


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
    """Server that shuts down in steps: not ready, not listening, stopped."""

    def __init__(self, config: uvicorn.Config, service: Service, drain_seconds: float) -> None:
        super().__init__(config)
        self._service, self._drain_seconds = service, drain_seconds

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002  # uvicorn gives it
        """Begin the shutdown; a second signal skips the waiting."""
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
        """Stop listening, finish requests in progress, and stop."""
        self.should_exit = True
