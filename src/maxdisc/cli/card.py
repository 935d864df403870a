"""``card``: a model card."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import file_digest
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from maxdisc.cli.console import size_of
from maxdisc.cli.failures import command
from maxdisc.cli.options import OUTPUT, ForceOption, ModelArgument
from maxdisc.cli.outputs import opened_output, path_of, require_writable

if TYPE_CHECKING:
    from maxdisc.report.card import ModelFile


@command
def card(
    model: ModelArgument,
    output: Annotated[
        Optional[Path],
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The Markdown file to write; by default standard output.",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
    force: ForceOption = False,
) -> None:
    """Write a model card: data, hash of the file, held-out performance, classes, limits and notes.

    [bold]Example[/]

    maxdisc card topics.maxdisc -o card.md
    """
    output = path_of(output)
    if output is not None:
        require_writable(output, force, files=[model])
    from maxdisc.cli.model import LoadedModel
    from maxdisc.report.card import model_card

    loaded = LoadedModel.read(model)
    content = model_card(loaded.fitted, loaded.about, facts_of(model))
    with opened_output(output) as file:
        file.write(content.encode("utf-8"))


def facts_of(path: Path) -> ModelFile:
    """Return what a card says of a model file itself."""
    from maxdisc.inspection.safe_text import visible
    from maxdisc.model_file.persistence import describe
    from maxdisc.report.card import ModelFile

    described, status = describe(path), path.stat()
    with path.open("rb") as file:
        digest = file_digest(file, "sha256").hexdigest()
    written = datetime.fromtimestamp(status.st_mtime, UTC).date().isoformat()
    size, version = size_of(status.st_size), described["maxdisc"]
    return ModelFile(visible(path.name), size, written, digest, visible(version), described["format"])
