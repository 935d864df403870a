"""Modules of an extra that is not installed have no doctests here, except where CI promises all extras."""

from __future__ import annotations

import os
from importlib.util import find_spec

_NEEDS = {"maxdisc/adapters/dask.py": "distributed", "maxdisc/cli/fit/on_dask.py": "distributed"}

collect_ignore = (
    []
    if os.environ.get("MAXDISC_REQUIRE_EXTRAS")
    else [path for path, package in _NEEDS.items() if find_spec(package) is None]
)
