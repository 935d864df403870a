"""Limits of the service."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Limits on requests and connections.

    Parameters
    ----------
    bytes : int
        Maximum size of a body.
    batch : int
        Maximum number of rows or documents in one request.
    seconds : float
        Maximum time to receive a head, to receive a body, and to answer.
    queue : int
        Maximum number of requests that are waiting or processed; more are refused as busy.
    workers : int
        Number of requests processed in parallel.
    connections : int
        Maximum number of open connections.
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
