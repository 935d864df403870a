"""The design's layers, read off the import statements."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest

import maxdisc

SOURCE = Path(maxdisc.__file__).parent

#: A module imports only from lower numbers, or from its own number where listed in PEERS.
LAYERS = {
    "matrices": 0,
    "plain_frame": 0,
    "notices": 0,
    "wording": 0,
    "measures": 0,
    "kernels": 0,
    "switches": 0,
    "threads": 0,
    "support": 0,
    "tables": 0,
    "frames": 0,
    "moments": 0,
    "counting": 0,
    "products": 0,
    "smoothing": 0,
    "sweeping": 0,
    "functions": 0,
    "dual": 0,
    "families": 1,
    "densities": 2,
    "nodes": 2,
    "columns": 3,
    "mixed": 3,
    "divergences": 3,
    "decision": 3,
    "joint": 3,
    "nulls": 3,
    "permutation": 3,
    "averaging": 3,
    "conditional": 3,
    "redundancy": 4,
    "rows": 4,
    "partitions": 4,
    "words": 5,
    "vocabulary": 5,
    "shared_weights": 3,
    "corrections": 3,
    "held_out": 4,
    "novelty": 4,
    "selection": 5,
    "schema": 4,
    "family_choice": 4,
    "evidence": 5,
    "sparse_folds": 5,
    "joint_folds": 5,
    "averaged_folds": 5,
    "explain": 5,
    "significance": 5,
    "markers": 5,
    "unlabelled": 5,
    "table_totals": 5,
    "parameters": 6,
    "scaling": 6,
    "search": 6,
    "folds": 6,
    "settings": 6,
    "learnt": 6,
    "joint_learning": 6,
    "learning": 6,
    "soft_learning": 6,
    "reading": 6,
    "drawing": 6,
    "trust": 6,
    "classifier": 6,
    "column_families": 6,
    "discriminative": 6,
    "text": 6,
    "writing": 7,
    "artifact": 7,
    "checkpoints": 7,
    "streams": 7,
    "fitted": 7,
    "matching": 7,
    "remembered": 7,
    "ranking": 7,
    "odds": 7,
    "curves": 7,
    "adapters": 8,
    "datasets": 8,
    "plots": 8,
    "report": 8,
    "serve": 8,
    "sources": 8,
    "loaded": 8,
    "testing": 8,
    "demo": 9,
    "cli": 9,
    "__main__": 10,
}

#: Within a layer, who may import whom.
PEERS = {
    "switches": {"kernels"},
    "matrices": {"switches"},
    "support": {"matrices"},
    "tables": {"matrices"},
    "frames": {"matrices"},
    "moments": {"matrices"},
    "counting": {"kernels", "matrices", "moments", "switches", "threads"},
    "products": {"counting", "matrices", "moments"},
    "smoothing": {"matrices", "moments"},
    "sweeping": {"kernels", "matrices", "switches"},
    "measures": {"matrices"},
    "functions": {"matrices", "support"},
    "dual": {"functions", "kernels", "matrices", "support", "switches", "threads"},
    "decision": {"divergences"},
    "columns": {"divergences"},
    "mixed": {"columns", "decision", "divergences"},
    "joint": {"decision"},
    "shared_weights": {"conditional"},
    "corrections": {"conditional"},
    "held_out": {"rows"},
    "partitions": {"held_out", "rows"},
    "vocabulary": {"words"},
    "evidence": {"selection"},
    "averaging": {"joint"},
    "settings": {"column_families", "parameters"},
    "learnt": {"parameters", "settings"},
    "joint_learning": {"learnt", "settings"},
    "learning": {"joint_learning", "learnt", "settings"},
    "soft_learning": {"learning", "learnt", "settings"},
    "reading": {"folds", "learning", "learnt", "parameters", "settings"},
    "drawing": {"learnt"},
    "trust": {"learnt"},
    "classifier": {
        *("drawing", "folds", "learning", "learnt", "parameters", "reading", "settings", "soft_learning"),
        "trust",
    },
    "discriminative": {"parameters"},
    "sparse_folds": {"selection"},
    "joint_folds": {"selection"},
    "averaged_folds": {"joint_folds", "selection"},
    "unlabelled": {"evidence", "selection"},
    "markers": {"significance"},
    "matching": {"fitted"},
    "ranking": {"fitted"},
    "odds": {"fitted"},
    "curves": {"fitted"},
    "report": {"plots"},
    "loaded": {"sources"},
    "serve": {"loaded", "report", "sources"},
    "scaling": {"parameters"},
    "search": {"classifier", "parameters", "scaling", "text"},
    "text": {"parameters", "scaling"},
    "artifact": {"writing"},
    "checkpoints": {"artifact", "writing"},
    "streams": {"checkpoints"},
    "cli": {"demo"},
}

#: What each layer may import from outside; the standard library is free to all.
FOUNDATION = {"numpy", "scipy"}
ESTIMATORS = FOUNDATION | {"sklearn"}

#: Optional dependencies, each allowed in its own module only.
OPTIONAL: dict[str, set[str]] = {
    "kernels": {"llvmlite", "numba"},
    "artifact": {"safetensors"},
    "plots": {"matplotlib"},
    "sources": {"anndata", "h5py", "pyarrow"},
    "adapters": {
        *(
            "anndata",
            "dask",
            "distributed",
            "h5py",
            "onnx",
            "pandas",
            "py4j",
            "pyarrow",
            "pyspark",
            "skl2onnx",
        ),
    },
    "serve": {"fastapi", "h11", "pydantic", "starlette", "uvicorn"},
    "cli": {"rich", "typer"},
}


def modules():
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts != ("__init__",):
            yield parts[0], path


@cache
def imports(path):
    """(package, submodule or None) for every import anywhere in a file, type-checking ones included."""
    return list(_imports(path))


def _imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if node.module == "maxdisc":
                names = [f"maxdisc.{_home(alias.name)}" for alias in node.names]
            else:
                names = [node.module or ""]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            yield top, rest.split(".")[0] or None


def _home(name):
    return maxdisc._HOMES.get(name, f"maxdisc.{name}").split(".")[1]


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda v: str(v).removeprefix(str(SOURCE)))
def test_a_module_imports_from_lower_layers_only(module, path):
    for top, submodule in imports(path):
        if top != "maxdisc" or submodule is None or submodule == module:
            continue
        lower = LAYERS[submodule] < LAYERS[module]
        assert lower or submodule in PEERS.get(module, set()), f"{module} imports {submodule}"


@pytest.mark.parametrize(("module", "path"), list(modules()), ids=lambda v: str(v).removeprefix(str(SOURCE)))
def test_scikit_learn_and_optional_packages_stay_where_they_belong(module, path):
    allowed = ESTIMATORS if LAYERS[module] >= 6 else FOUNDATION
    for top, _ in imports(path):
        if top not in sys.stdlib_module_names and top != "maxdisc":
            assert top in allowed | OPTIONAL.get(module, set()), f"{module} imports {top}"


def test_every_module_has_a_layer():
    assert {module for module, _ in modules()} == set(LAYERS)


def test_no_name_says_nothing():
    empty = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
    assert not [path for _, path in modules() if path.stem in empty]


def test_importing_the_package_imports_nothing_heavy():
    import subprocess

    code = "import sys, maxdisc; dir(maxdisc); print([m for m in ('numpy', 'sklearn') if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_the_rule_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from maxdisc import MaxDiscClassifier\nimport torch.nn\nfrom maxdisc.rows import Rows\n")
    assert sorted(imports(bad), key=str) == [("maxdisc", "classifier"), ("maxdisc", "rows"), ("torch", "nn")]


def test_contributors_are_shown_the_same_layers():
    page = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([^|]+) \|", page, re.MULTILINE)
    shown = {module: int(layer) for layer, modules_ in rows for module in re.findall(r"`(\w+)`", modules_)}
    assert shown == {module: layer for module, layer in LAYERS.items() if module != "__main__"}
