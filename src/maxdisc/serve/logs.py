"""Logs of the service: one JSON object per line, without document contents."""

from __future__ import annotations

import contextlib
import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import Any, TextIO


class Log:
    """Log of JSON lines, to standard error by default."""

    def __init__(self, stream: TextIO | None = None, requests: bool = True) -> None:
        self.stream, self.requests = stream, requests

    def say(self, event: str, **facts: Any) -> None:
        """Write one line."""
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": now, "event": event, **facts}, default=str)
        # The reader of the log may be gone; that must not stop the service.
        with contextlib.suppress(OSError, ValueError):
            print(line, file=self.stream or sys.stderr, flush=True)

    def request(self, **facts: Any) -> None:
        """Write the line of a request."""
        if self.requests:
            self.say("request", **facts)

    def defect(self, error: BaseException, **facts: Any) -> None:
        """Log the location of a bug, without values, which may be documents."""
        frames = traceback.extract_tb(error.__traceback__)[-6:]
        where = [f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in frames]
        self.say("defect", error=type(error).__name__, where=where, **facts)


class ServerMessages(logging.Handler):
    """Handler that writes messages of the HTTP server to the same log."""

    def __init__(self, log: Log) -> None:
        # Warnings are about single requests.
        super().__init__(logging.WARNING if log.requests else logging.ERROR)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Write one line; for exceptions, without their message."""
        if record.exc_info and record.exc_info[1] is not None:
            self.log.defect(record.exc_info[1])
        else:
            self.log.say(
                "server", level=record.levelname.lower(), message=" ".join(record.getMessage().split())
            )

    def listen(self) -> None:
        """Handle the messages of the server's loggers."""
        for name in ("uvicorn", "uvicorn.error", "uvicorn.access", "uvicorn.asgi"):
            logger = logging.getLogger(name)
            logger.handlers, logger.propagate = [], False
        logging.getLogger("uvicorn.error").handlers = [self]
        logging.getLogger("asyncio").handlers = [self]
