"""``export``: a model file as an ONNX graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from maxdisc.cli.console import say_facts, size_of
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.options import OUTPUT, ForceOption, ModelArgument
from maxdisc.cli.outputs import opened_output, require_writable


@command
def export(
    model: ModelArgument,
    output: Annotated[
        Path,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The graph to write, such as model.onnx.",
            rich_help_panel=OUTPUT,
        ),
    ],
    float32: Annotated[
        bool,
        typer.Option("--float32", help="Input in single precision.", rich_help_panel=OUTPUT),
    ] = False,
    force: ForceOption = False,
) -> None:
    """Write a model as an ONNX graph, which other languages can run.

    [bold]Example[/]

    maxdisc export topics.maxdisc -o topics.onnx
    """
    if not model.exists():
        raise BadInputError(f"{model} does not exist: fit writes a model file with -o.")
    require_writable(output, force, files=[model])
    from maxdisc.adapters.onnx import to_onnx
    from maxdisc.model_file.persistence import load

    estimator = load(model)
    made = to_onnx(estimator, dtype="float32" if float32 else "float64")
    for key, value in _metadata(model, estimator).items():
        made.metadata_props.add(key=f"maxdisc.{key}", value=value)
    content = made.SerializeToString()
    with opened_output(output) as file:
        file.write(content)
    say_facts(
        [
            ("written", f"{output}, {size_of(len(content))}"),
            ("inputs", ", ".join(value.name for value in made.graph.input)),
            ("outputs", ", ".join(value.name for value in made.graph.output)),
        ]
    )


def _metadata(path: Path, estimator: Any) -> dict[str, str]:
    """Return the facts of the model's card; of a discriminative model, which has no card, none."""
    from maxdisc.cli.card import facts_of
    from maxdisc.inspection.model_view import ModelView
    from maxdisc.model_file.about import remembered
    from maxdisc.model_file.persistence import describe
    from maxdisc.report.card import card_facts

    described = describe(path)
    if described["steps"][-1]["kind"] == "discriminative":
        return {}
    return card_facts(ModelView.of(estimator), remembered(described["about"]), facts_of(path))
