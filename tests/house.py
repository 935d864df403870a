"""Figures of the package's structure: ``make house`` prints them, tests/test_house.py holds their bars."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from statistics import quantiles

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.test_rooms import FILES, ROOMS, SOURCE, imports, room_of  # noqa: E402

#: The modules that users import from; ``__all__`` of each lists its public names.
PUBLIC_MODULES = (
    *("maxdisc", "maxdisc.families", "maxdisc.families.functions", "maxdisc.divergences", "maxdisc.rows"),
    *("maxdisc.words", "maxdisc.testing", "maxdisc.datasets", "maxdisc.model_file", "maxdisc.plots"),
    *("maxdisc.report", "maxdisc.engines", "maxdisc.adapters.anndata", "maxdisc.adapters.dask"),
    *("maxdisc.adapters.onnx", "maxdisc.adapters.spark", "maxdisc.serve"),
)
#: The most that a figure may be.
BARS = {
    "entries at the top": 30,
    "modules in the largest folder": 20,
    "imports against the order of rooms": 0,
    "public names": 65,
    "lines of the largest function": 120,
}


def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def public_names(module: str) -> list[str]:
    """What a module lists in ``__all__``, read without importing it: no extra is needed."""
    path = SOURCE.parent.joinpath(*module.split("."))
    tree = tree_of(path / "__init__.py" if path.is_dir() else path.with_suffix(".py"))
    (names,) = (
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["__all__"]
    )
    return [name for name in names if name != "__version__"]


def size(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return lines
    return lines - ((function.body[0].end_lineno or 0) - function.body[0].lineno + 1)


def spread(sizes: list[int]) -> str:
    tenths = quantiles(sizes, n=10, method="inclusive")
    return f"{tenths[4]:.0f} / {tenths[8]:.0f} / {max(sizes)}"


def figures() -> dict[str, int | str]:
    """Every figure by name."""
    files = [SOURCE / "__init__.py", *FILES]
    folders: dict[Path, int] = {}
    for path in files:
        if path.name != "__init__.py":
            folders[path.parent] = folders.get(path.parent, 0) + 1
    lines = [len(path.read_text(encoding="utf-8").splitlines()) for path in files]
    functions = [
        size(node)
        for path in files
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    against = [
        (path, room)
        for path in FILES
        for room in imports(path)[1]
        if ROOMS.index(room) > ROOMS.index(room_of(path))
    ]
    return {
        "entries at the top": sum(1 for path in SOURCE.iterdir() if path.name != "__pycache__"),
        "modules in the largest folder": max(folders.values()),
        "imports against the order of rooms": len(against),
        "public names": sum(len(public_names(module)) for module in PUBLIC_MODULES),
        "lines of the largest function": max(functions),
        "rooms": len(ROOMS),
        "files": len(files),
        "lines": sum(lines),
        "lines of a file, median / 90 % / most": spread(lines),
        "lines of a function, median / 90 % / most": spread(functions),
    }


if __name__ == "__main__":
    for name, figure in figures().items():
        bar = f"  (at most {BARS[name]})" if name in BARS else ""
        print(f"{name:<42} {figure}{bar}")
