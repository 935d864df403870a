"""Who a request says it is for.

A page of another site can have its own name lead to this machine, and then reads what a service answers that
listens here alone. Its requests still carry that name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def is_loopback(host: str) -> bool:
    """Whether a name or an address is this machine's own, and no other machine's.

    Examples
    --------
    >>> from maxdisc.serve.hosts import is_loopback
    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in ("localhost", "localhost.")


def is_for_loopback(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Whether the header Host of a request names this machine; without one, nobody else's name leads here.

    Examples
    --------
    >>> from maxdisc.serve.hosts import is_for_loopback
    >>> [is_for_loopback([(b"host", name)]) for name in (b"localhost:80", b"[::1]:80", b"evil.example")]
    [True, True, False]
    """
    for name, value in headers:
        if name == b"host":
            host = value.decode("latin-1").strip()
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if not is_loopback(host):
                return False
    return True
