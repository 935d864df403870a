"""The commands, and what comes before them: help, version, completion."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from maxdisc.cli.card import card
from maxdisc.cli.comparison.baselines import baselines
from maxdisc.cli.comparison.compare import compare
from maxdisc.cli.console import say_failure
from maxdisc.cli.doctor import doctor
from maxdisc.cli.evaluate import evaluate, report
from maxdisc.cli.explain import explain
from maxdisc.cli.export import export
from maxdisc.cli.failures import BAD_INPUT, INTERRUPTED, command, exit_code
from maxdisc.cli.fit.command import fit
from maxdisc.cli.info import info
from maxdisc.cli.predict.command import predict
from maxdisc.cli.rank import rank
from maxdisc.cli.serve import serve
from maxdisc.cli.standard_streams import OutputError, whole_streams

# click's, wherever this version of Typer keeps it.
UsageError: Any = typer.BadParameter.__bases__[0]


class _PlainFlags:
    """Part of commands whose help shows no type of options that take no value."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]  # of the command that it is a part of
        for param in params:
            if getattr(param, "is_flag", False):
                param.metavar = ""
        return params


class _Command(_PlainFlags, TyperCommand):
    """One of the commands."""


class _Group(_PlainFlags, TyperGroup):
    """The command that has the others."""


app = typer.Typer(
    cls=_Group,
    name="maxdisc",
    help="A calibrated, explainable classifier for text and tables that selects its own features.",
    epilog="maxdisc COMMAND --help shows the options of a command, with examples.",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)


def _version(asked: bool) -> None:
    if asked:
        print(f"maxdisc {version('maxdisc')}")
        raise typer.Exit()


@app.callback(invoke_without_command=True)
def _before(
    context: typer.Context,
    show_version: Annotated[  # noqa: ARG001  # its callback has answered
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit."),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of errors (or MAXDISC_DEBUG=1).")
    ] = False,
) -> None:
    if debug:
        os.environ["MAXDISC_DEBUG"] = "1"
    if context.invoked_subcommand is None:
        print(context.get_help())


@command
def demo() -> None:
    """Compare the default with LinearSVC, logistic regression and naive Bayes on bundled data."""
    from maxdisc.cli.demo import main

    main()


for _command in (
    demo,
    fit,
    evaluate,
    predict,
    rank,
    explain,
    report,
    export,
    serve,
    info,
    card,
    baselines,
    compare,
    doctor,
):
    app.command(cls=_Command)(_command)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the command that the arguments name; the exit code."""
    given = None if arguments is None else list(arguments)
    with whole_streams() as finish:
        try:
            code = get_command(app).main(args=given, prog_name="maxdisc", standalone_mode=False)
            if not code:
                finish()
        except typer.Abort:
            say_failure("stopped.")
            return INTERRUPTED
        except UsageError as error:
            where = getattr(getattr(error, "ctx", None), "command_path", "maxdisc")
            say_failure(f"{error.format_message()} ({where} --help shows the usage)")
            return BAD_INPUT
        except OutputError as error:
            return exit_code(error)
        return code if isinstance(code, int) else 0
