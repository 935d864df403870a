"""HTTP service (extra ``serve``)."""

from __future__ import annotations

from maxdisc.numerics.installation import pip_line

try:
    import fastapi  # noqa: F401  # asked for once, here, with the way out
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401  # only whether it is there
except ImportError as error:
    raise ImportError(
        f"the service needs {error.name}, which is not installed: {pip_line('serve')}"
    ) from error

from maxdisc.serve.app import create_app
from maxdisc.serve.limits import Limits

__all__ = ["Limits", "create_app"]
