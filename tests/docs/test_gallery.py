"""Every example runs as the script that it is, from any folder, and leaves nothing behind."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.docs.public_surface import reference

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
#: What an example needs beside the library and what draws: modules of an extra, or a program.
NEEDS = {
    "plot_mixed_table": ["pandas"],
    "plot_dask": ["dask"],
    "on_spark": ["pyspark", "java"],
    "plot_serving": ["fastapi", "uvicorn"],
    "plot_onnx": ["onnx", "skl2onnx", "onnxruntime"],
    "plot_single_cells": ["anndata", "scanpy"],
}


def is_there(need):
    if need == "java":
        return bool(os.environ.get("JAVA_HOME")) or any(
            (Path(folder) / "java").exists() for folder in os.environ["PATH"].split(os.pathsep)
        )
    return find_spec(need) is not None


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example, tmp_path):
    missing = [need for need in NEEDS.get(example.stem, []) if not is_there(need)]
    if missing:
        # CI promises that every extra is there.
        (pytest.fail if os.environ.get("MAXDISC_REQUIRE_EXTRAS") else pytest.skip)(f"needs {missing}")
    # Warnings are what the reader would see; Spark's and those of its workers are its own.
    strict = [] if example.stem == "on_spark" else ["-W", "error"]
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    # Data of one machine may not be what makes an example run.
    environment.pop("MAXDISC_DATA", None)
    done = subprocess.run(
        [sys.executable, *strict, str(example)], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_uses_public_names_and_begins_with_a_title(example):
    text = example.read_text(encoding="utf-8")
    tree = ast.parse(text)
    title, rule = ast.get_docstring(tree).splitlines()[:2]
    assert set(rule) == {"="}
    assert len(rule) >= len(title)
    assert not re.search(r"\b\w+\._[a-z]", text), "a private attribute"
    listed = reference()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module.split(".")[0] == "maxdisc":
            for name in node.names:
                public = f"{node.module}.{name.name}"
                assert re.search(rf"{re.escape(public)}(\s|\.)", listed), public


def test_every_story_has_its_place():
    order = (ROOT / "docs" / "extensions" / "stories.py").read_text(encoding="utf-8")
    told = re.findall(r'^    "(\w+\.py)",$', order, re.M)
    assert sorted(told) == [path.name for path in EXAMPLES]
    assert set(NEEDS) <= {path.stem for path in EXAMPLES}
