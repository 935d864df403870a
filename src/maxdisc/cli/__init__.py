"""The command line, one module per command.

Nothing here imports numpy until a command needs it, so that help and completion answer at once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return 0, 1 (failed check), 2 (bad input), 70 (defect) or 130 (Ctrl-C)."""
    try:
        from maxdisc.cli.app import run
    except ModuleNotFoundError as error:
        package = str(error.name).partition(".")[0]
        if package not in ("typer", "rich"):
            raise
        from maxdisc.numerics.installation import pip_line

        print(
            f"maxdisc: the command line needs {package}, which is not installed: {pip_line('cli')}",
            file=sys.stderr,
        )
        return 2
    return run(arguments)
