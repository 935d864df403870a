"""How much a service takes at once, and how long it waits."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What bounds a request.

    Parameters
    ----------
    bytes : int
        Of a body.
    batch : int
        Rows or documents in one request.
    seconds : float
        For a head to arrive, then for a body, and then for the answer.
    queue : int
        Requests that wait or are worked on; beyond them the service says that it is busy.
    workers : int
        Requests that are worked on side by side.
    connections : int
        Open at once.
    idle : float
        Seconds that a connection stays open without a request.

    Examples
    --------
    >>> from maxdisc.serve import Limits
    >>> Limits(batch=100).seconds
    10.0
    """

    bytes: int = 2**23
    batch: int = 10_000
    seconds: float = 10.0
    queue: int = 64
    workers: int = 2
    connections: int = 512
    idle: float = 15.0
