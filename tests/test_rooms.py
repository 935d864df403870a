"""The order of rooms, read off the import statements."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import maxdisc

SOURCE = Path(maxdisc.__file__).parent
#: A room imports only from rooms to its left.
ROOMS = (
    *("numerics", "moments", "families", "densities", "divergences", "conditional", "decisions", "rows"),
    *("selection", "calibration", "significance", "words", "fitting", "files", "inspection"),
    *("classifier", "search", "discriminative", "testing", "datasets"),
    *("model_file", "plots", "report", "engines", "adapters", "serve", "cli"),
    "__main__",
)
#: What a room may import beside the standard library, numpy and scipy.
PACKAGES = {
    "numerics": {"pandas", "threadpoolctl"},
    **{room: {"sklearn"} for room in ROOMS[ROOMS.index("words") :]},
    "model_file": {"safetensors", "sklearn"},
    "files": {"anndata", "h5py", "pyarrow", "python_calamine", "sklearn"},
    "plots": {"matplotlib", "sklearn"},
    "adapters": {
        *("anndata", "dask", "distributed", "h5py", "onnx", "pandas", "py4j", "pyarrow", "pyspark"),
        *("skl2onnx", "sklearn"),
    },
    "serve": {"fastapi", "h11", "prometheus_client", "pydantic", "sklearn", "starlette", "uvicorn"},
    "cli": {"rich", "sklearn", "typer"},
}
FILES = sorted(path for path in SOURCE.rglob("*.py") if path.parent != SOURCE or path.name != "__init__.py")


def room_of(path):
    return path.relative_to(SOURCE).with_suffix("").parts[0]


def imports(path):
    """The packages that a file imports anywhere, and the rooms of maxdisc."""
    packages, rooms = set(), set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            top, _, rest = name.partition(".")
            # What `maxdisc` itself exports lives in a room, too.
            home = maxdisc._HOMES.get(rest, name) if top == "maxdisc" else name
            (rooms.add(home.split(".")[1]) if top == "maxdisc" else packages.add(top))
    return packages - sys.stdlib_module_names - {"__future__"}, rooms


def test_a_module_imports_what_its_room_may():
    for path in FILES:
        room, (packages, rooms) = room_of(path), imports(path)
        allowed = {"numpy", "scipy"} | PACKAGES.get(room, set())
        if path.stem.startswith("compiled_") or path.name == "compiling.py":
            allowed |= {"llvmlite", "numba"}
        assert rooms <= set(ROOMS[: ROOMS.index(room) + 1]), path
        assert packages <= allowed, path


def test_an_optional_package_is_imported_in_one_room():
    # Adapters speak the types of their peers; scikit-learn and numba are there.
    found = {(package, room_of(path)) for path in FILES for package in imports(path)[0]}
    optional = [
        package
        for package, room in found
        if room != "adapters" and package not in ("numpy", "scipy", "sklearn", "numba", "llvmlite")
    ]
    assert len(optional) == len(set(optional)), sorted(optional)


def test_every_room_is_in_the_list():
    assert {room_of(path) for path in FILES} == set(ROOMS)


def test_no_name_says_nothing():
    empty = {"utils", "util", "helpers", "helper", "common", "core", "misc"}
    assert not [path for path in FILES if path.stem in empty]


def test_the_rule_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("from maxdisc import MaxDiscClassifier\nimport torch.nn\nfrom maxdisc.rows import Rows\n")
    assert imports(bad) == ({"torch"}, {"classifier", "rows"})


def test_contributors_are_shown_the_same_order():
    page = (Path(__file__).resolve().parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
    shown = page[page.index("numerics <") :].partition("```")[0]
    assert shown.split() == " < ".join(ROOMS[:-1]).split()


def packages_after(code):
    """The packages that a process has loaded after this code."""
    code = f"import sys; {code}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(out.stdout.split())


def test_importing_the_package_loads_nothing():
    assert not {"numpy", "scipy", "sklearn"} & packages_after("import maxdisc; dir(maxdisc)")


def test_reading_files_does_not_load_data_sets():
    code = "import maxdisc.files, sys; print('sklearn.datasets' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "False\n"


def test_importing_the_classifier_loads_what_scikit_learn_loads():
    ours = packages_after("from maxdisc import MaxDiscClassifier")
    theirs = packages_after("import sklearn.model_selection")
    more = ours - theirs - sys.stdlib_module_names
    assert {name for name in more if not name.startswith("_")} == {"maxdisc"}
