"""The documentation as a whole: complete, and current with the records that it is made from."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.public_surface import MODULES, imported, names_of, reference

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def read(page):
    return (DOCS / page).read_text(encoding="utf-8")


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_on_the_page_of_its_module(module):
    listed = re.findall(r"^\.\. auto\w+:: ([\w.]+)", read(f"api/{module}.md"), re.M)
    assert f"| [{module}](api/{module}.md) |" in read("api.md")
    if imported(module) is None:
        pytest.skip(f"{module} needs an extra that is not installed")
    assert sorted(listed) == sorted(f"{module}.{name}" for name in names_of(module))
    (row,) = re.findall(rf"^\| \[{re.escape(module)}\]\(.*$", read("api.md"), re.M)
    assert re.findall(r"`(\w+)`", row) == names_of(module)


def test_the_reference_is_written_as_numpydoc_has_it():
    """What it asks for beyond is left to each docstring: see also, more sentences, an order as first word."""
    if find_spec("numpydoc") is None:
        (pytest.fail if os.environ.get("MAXDISC_REQUIRE_EXTRAS") else pytest.skip)("needs numpydoc")
    from numpydoc.validate import validate

    left = {"ES01", "EX01", "PR04", "PR08", "RT01", "SA01", "SS05", "SS06"}
    found = []
    for name in re.findall(r"^\.\. auto\w+:: ([\w.]+)", reference(), re.M):
        # Settings of Spark's estimators are keywords, whatever their names.
        if ".adapters." in name:
            continue
        checked = validate(name)
        # A short docstring may tell its parameters in a sentence; a list of them is complete.
        ignored = left if "Parameters\n---" in checked["docstring"] else left | {"PR01"}
        # What begins with an underscore is not the reader's to give.
        private = re.compile(r"Parameters \{('_\w+'(, )?)+\} not documented")
        errors = [told for code, told in checked["errors"] if code not in ignored and not private.match(told)]
        found += [f"{name}: {told}" for told in errors]
    assert not found, "\n".join(found)


def test_every_page_is_in_the_contents_once():
    entries = []
    for index in ("index.md", "api.md", "results/index.md", "decisions/index.md"):
        for tree in re.findall(r"```\{toctree\}\n(.*?)```", read(index), re.S):
            lines = [line for line in tree.splitlines() if line and not line.startswith(":")]
            entries += [str((Path(index).parent / line).as_posix()) for line in lines]
    assert len(entries) == len(set(entries))
    pages = {
        page.relative_to(DOCS).with_suffix("").as_posix()
        for page in DOCS.rglob("*.md")
        if not {"_build", "gallery"} & set(page.relative_to(DOCS).parts)
    }
    assert set(entries) | {"index"} == pages | {"gallery/index"}


def test_the_results_are_what_the_stored_runs_say(tmp_path):
    """After a new run: python -m experiments tables."""
    command = [sys.executable, "-m", "experiments", "tables", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    written = {path.name for path in tmp_path.iterdir()}
    # The page of the default has its own record, generator and test: tests/benchmarks/test_default_models.py.
    assert written | {"default.md"} == {path.name for path in (DOCS / "results").iterdir()}
    for name in sorted(written):
        if name.endswith(".md"):  # pictures differ from one version of matplotlib to the next
            assert (tmp_path / name).read_text(encoding="utf-8") == read(f"results/{name}"), name


def test_figures_of_the_comparison_are_those_of_the_pages_it_links_to():
    page = read("comparison.md")
    sources = "".join(
        (DOCS / link).read_text(encoding="utf-8")
        for link in re.findall(r"\]\(([\w./-]+\.(?:md|json))\)", page)
        if (DOCS / link).exists()
    )
    figures = re.findall(
        r"(?<![\d.])\d+\.\d+(?![\d.])", re.sub(r"^.*scikit-learn 1\.9\.$", "", page, flags=re.M)
    )
    assert len(figures) > 25
    # A record has more digits than a sentence.
    known = [float(number) for number in re.findall(r"\d+\.\d+", sources)]
    for figure in figures:
        unit = 10.0 ** -len(figure.partition(".")[2])
        assert any(abs(float(figure) - number) <= 0.5 * unit + 1e-12 for number in known), figure
