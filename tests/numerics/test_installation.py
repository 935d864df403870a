"""Advice to install: it fits how maxdisc was installed, and names only what can be had."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from maxdisc.numerics.installation import Installation, pip_line

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = set(
    tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
)
SOURCES = sorted((ROOT / "src").rglob("*.py"))
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").glob("*.py")])
REQUIRES = """Metadata-Version: 2.4
Name: maxdisc
Version: 1
Requires-Dist: numpy
Requires-Dist: fastapi>=0.115; extra == 'serve'
Requires-Dist: maxdisc[cli,plots]; extra == 'serve'
Requires-Dist: rich>=13.9; extra == "cli"
Requires-Dist: matplotlib; extra == 'plots'
Requires-Dist: uvloop; (sys_platform != 'win32') and extra == 'serve'
Requires-Dist: dask; extra == 'dask'
"""


@pytest.fixture
def installed(tmp_path):
    """Metadata of an installation that ``direct_url.json`` says this of."""

    def make(told, installer="pip"):
        folder = tmp_path / "maxdisc-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(REQUIRES)
        (folder / "INSTALLER").write_text(installer + "\n")
        if told is not None:
            (folder / "direct_url.json").write_text(json.dumps(told))
        return Installation.found(PathDistribution(folder))

    return make


@pytest.fixture
def clone(tmp_path):
    folder = tmp_path / "a clone"
    folder.mkdir()
    (folder / "pyproject.toml").touch()
    return folder


@pytest.mark.parametrize("editable", [True, False])
def test_in_a_clone_the_clone_is_installed_again(installed, clone, editable):
    info = {"editable": True} if editable else {}
    found = installed({"url": clone.as_uri(), "dir_info": info})
    begun = ["python", "-m", "pip", "install", *["-e"] * editable]
    assert shlex.split(found.pip_line("serve", "plots")) == [*begun, f"{clone}[serve,plots]"]
    assert str(clone) in found.description
    assert ("editable" in found.description) == editable


def test_from_an_index_the_package_is_named(installed):
    assert installed(None).pip_line("serve") == "python -m pip install 'maxdisc[serve]'"


def test_uv_makes_environments_without_pip(installed):
    assert installed(None, "uv").pip_line("serve") == "uv pip install 'maxdisc[serve]'"


@pytest.mark.parametrize(
    ("told", "asked"),
    [
        (
            {"url": "https://a.org/b.git", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
            "maxdisc[onnx] @ git+https://a.org/b.git@c0ffee",
        ),
        (
            {"url": "https://a.org/b.git", "subdirectory": "c", "vcs_info": {"vcs": "git", "commit_id": "d"}},
            "maxdisc[onnx] @ git+https://a.org/b.git@d#subdirectory=c",
        ),
        (
            {"url": "file:///w/maxdisc-1-py3-none-any.whl", "archive_info": {}},
            "maxdisc[onnx] @ file:///w/maxdisc-1-py3-none-any.whl",
        ),
    ],
)
def test_what_came_from_an_address_comes_from_there_again(installed, told, asked):
    assert shlex.split(installed(told).pip_line("onnx"))[-1] == asked


def test_of_a_clone_that_is_gone_the_packages_are_named(installed, tmp_path):
    line = installed({"url": (tmp_path / "gone").as_uri(), "dir_info": {}}).pip_line("serve")
    asked = ["fastapi>=0.115", "matplotlib", "rich>=13.9"]
    assert shlex.split(line) == ["python", "-m", "pip", "install", *asked]


def test_pip_understands_the_line(installed, clone):
    constructors = pytest.importorskip("pip._internal.req.constructors")
    line = shlex.split(installed({"url": clone.as_uri(), "dir_info": {"editable": True}}).pip_line("serve"))
    asked = constructors.install_req_from_editable(line[-1])
    assert asked.extras == {"serve"}
    assert Path(asked.link.file_path) == clone
    assert constructors.install_req_from_line(f"{clone}[serve,cli]").extras == {"serve", "cli"}


def test_messages_take_the_line_from_here_with_extras_that_there_are():
    asked = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if path.name == "installation.py":
                continue
            if isinstance(node, ast.Call) and "pip_line" in ast.unparse(node.func):
                asked += [extra.value for extra in node.args if isinstance(extra, ast.Constant)]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not re.search(r"maxdisc\[|pip install .*maxdisc", node.value), path
    assert set(asked) <= EXTRAS
    assert {"serve", "cli", "plots", "onnx", "excel"} <= set(asked)


def test_pages_install_from_a_clone_with_extras_that_there_are():
    found = 0
    for page in PAGES:
        for line in page.read_text(encoding="utf-8").splitlines():
            assert not re.search(r"pip install (-\S+ )*['\"]?maxdisc", line), f"{page}: {line}"
            for extras in re.findall(r"pip install (?:-e |--editable )?'\.\[([\w,]+)\]'", line):
                found += 1
                assert set(extras.split(",")) <= EXTRAS, f"{page}: {line}"
    assert found > 10


def test_this_installation_has_a_line():
    assert "install" in pip_line("cli")
