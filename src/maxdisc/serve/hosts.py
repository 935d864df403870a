"""Validation of the Host header.

By DNS rebinding, a page of another site can make its own name resolve to this machine, and then read what a
service on the loopback answers. Its requests still carry that name.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's loopback."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() in ("localhost", "localhost.")


def is_for_loopback(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether the Host header of a request names the loopback, or is absent."""
    for name, value in headers:
        if name == b"host":
            host = value.decode("latin-1").strip()
            host = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
            if not is_loopback(host):
                return False
    return True
