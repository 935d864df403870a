"""``serve``: a model, or several, behind HTTP."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from maxdisc.cli.failures import BadInputError, command

LISTENING, LIMITS = "Listening", "Limits"


@command
def serve(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="Model files; NAME=FILE names one. The first is the default.",
            show_default=False,
        ),
    ],
    host: Annotated[
        str, typer.Option("--host", help="The address to listen on.", rich_help_panel=LISTENING)
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="0 for any free port.", rich_help_panel=LISTENING)
    ] = 8000,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Serve without a token, also to other machines.",
            rich_help_panel=LISTENING,
        ),
    ] = False,
    docs: Annotated[
        bool,
        typer.Option("--docs", help="Show the API as a page at /docs.", rich_help_panel=LISTENING),
    ] = False,
    reload: Annotated[
        float,
        typer.Option(
            "--reload",
            metavar="SECONDS",
            min=0,
            help="Seconds between checks for a new model file; 0 for none.",
            rich_help_panel=LISTENING,
        ),
    ] = 1.0,
    drain: Annotated[
        float,
        typer.Option(
            "--drain",
            metavar="SECONDS",
            min=0,
            help='Seconds between reporting "not ready" and the end of listening.',
            rich_help_panel=LISTENING,
        ),
    ] = 1.0,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1024, help="Size of a body.", rich_help_panel=LIMITS)
    ] = 2**23,
    max_batch: Annotated[
        int, typer.Option("--max-batch", min=1, help="Rows per request.", rich_help_panel=LIMITS)
    ] = 10_000,
    max_seconds: Annotated[
        float,
        typer.Option(
            "--max-seconds",
            min=0.1,
            help="Maximum time to receive a request, and to answer it.",
            rich_help_panel=LIMITS,
        ),
    ] = 10.0,
    max_queue: Annotated[
        int, typer.Option("--max-queue", min=1, help="Waiting requests.", rich_help_panel=LIMITS)
    ] = 64,
    max_connections: Annotated[
        int, typer.Option("--max-connections", min=1, help="Open connections.", rich_help_panel=LIMITS)
    ] = 512,
    max_idle: Annotated[
        float,
        typer.Option(
            "--max-idle",
            metavar="SECONDS",
            min=0.1,
            help="Seconds that an idle connection stays open.",
            rich_help_panel=LIMITS,
        ),
    ] = 15.0,
    workers: Annotated[
        int, typer.Option("--workers", min=1, max=64, help="Threads that compute.", rich_help_panel=LIMITS)
    ] = 2,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not log requests.")] = False,
) -> None:
    """Answer requests over HTTP: predictions, explanations, and a page at /.

    It listens on this machine only, unless --host says otherwise. With a
    token in the environment variable MAXDISC_TOKEN, requests must bear it.
    A model file that is replaced is loaded, and served from then on.

    [bold]Examples[/]

    maxdisc serve topics.maxdisc

    maxdisc serve news=topics.maxdisc mail.maxdisc --port 9000
    """
    token = os.environ.get("MAXDISC_TOKEN") or None
    if token is not None and not (token.isascii() and token.isprintable() and " " not in token):
        raise BadInputError("MAXDISC_TOKEN must be of visible ASCII characters, without spaces.")
    from maxdisc.serve.hosts import is_loopback

    alone = is_loopback(host)
    if not alone and token is None and not no_token:
        raise BadInputError(
            f"other machines can reach {host}, and anyone there could use the service: set MAXDISC_TOKEN, or "
            "say --no-token."
        )
    paths = _named(models)
    from maxdisc.model_file.persistence import describe
    from maxdisc.serve import Limits
    from maxdisc.serve.logs import Log
    from maxdisc.serve.server import run
    from maxdisc.serve.service import Service

    for path in paths.values():
        describe(path)  # what is no model file is told before anyone can ask
    limits = Limits(max_bytes, max_batch, max_seconds, max_queue, workers, max_connections, max_idle)
    log = Log(requests=not quiet)
    service = Service(paths, limits, token, log, reload, alone and token is None and not no_token, docs)
    run(service, host, port, drain)
    if service.work.busy:
        # Nobody waits for these answers any more, but Python would, before it ends.
        os._exit(0)


def _named(models: list[str]) -> dict[str, Path]:
    """Files by name: the one given, or that of the file without its ending."""
    paths: dict[str, Path] = {}
    for given in models:
        name, equals, rest = given.partition("=")
        path = Path(rest) if equals and not Path(given).exists() else Path(given)
        name = name if path != Path(given) else path.stem
        if not name and path != Path():
            raise BadInputError(f"{given!r} names no model file: say FILE, or NAME=FILE.")
        if path.is_dir():
            raise BadInputError(f"{path} is a folder, not a model file.")
        if not path.exists():
            raise BadInputError(f"{path} does not exist: fit writes a model file with -o.")
        if name in paths:
            raise BadInputError(f"two models are called {name!r}: give one another name with NAME=FILE.")
        paths[name] = path
    return paths
