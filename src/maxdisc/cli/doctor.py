"""``doctor``: what is installed, and whether compiled code works."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import typer

from maxdisc.cli.console import Speech, say_facts, say_json, size_of
from maxdisc.cli.failures import CHECK_FAILED, command
from maxdisc.cli.options import JsonOption, QuietOption

#: Extras that add to the library; the others are for its developers.
EXTRAS = ("cli", "plots", "excel", "serve", "onnx", "anndata", "dask", "spark")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "safetensors", "threadpoolctl")
_CLOSE = 1e-9


@command
def doctor(json: JsonOption = False, quiet: QuietOption = False) -> None:
    """Show versions, extras, threads and the cache folder, and check that compiled code works.

    The check fits a few rows with compiled code and without it. The first
    one on a machine compiles for half a minute; later fits then begin at
    once. The exit code is 1 if compiled code does not work.

    [bold]Examples[/]

    maxdisc doctor

    maxdisc doctor --json > environment.json
    """
    speech = Speech(quiet)
    facts = _environment()
    with speech.progress("checking compiled code"):
        facts["compiled_code"] = check_compiled_code()
    facts["cache"] = _cache()
    say_json(facts) if json else _show(facts)
    if not facts["compiled_code"]["works"]:
        raise typer.Exit(CHECK_FAILED)


def _environment() -> dict[str, Any]:
    """Return versions, extras and threads."""
    from maxdisc.numerics.installation import Installation
    from maxdisc.numerics.threads import n_threads

    here = Installation.found()
    needed = {extra: [_name(package) for package in here.packages(extra)] for extra in EXTRAS}
    missing = {
        extra: absent for extra, names in needed.items() if (absent := [n for n in names if not _version(n)])
    }
    return {
        "maxdisc": _version("maxdisc"),
        "installed": here.description,
        "code": str(Path(__file__).parents[1]),
        "python": platform.python_version(),
        "executable": sys.executable,
        "platform": platform.platform(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "extras": [extra for extra in EXTRAS if extra not in missing],
        "missing": missing,
        "install": here.pip_line(*missing) if missing else None,
        "threads": n_threads(),
        "cores": os.cpu_count(),
    }


def _name(requirement: str) -> str:
    """Return the package that a requirement is about."""
    return requirement[
        : next((i for i, c in enumerate(requirement) if not (c.isalnum() or c in "._-")), None)
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def check_compiled_code() -> dict[str, Any]:
    """Fit a few rows with compiled and with plain code, and compare the probabilities."""
    try:
        kernels, seconds, difference = _compare()
    except Exception as error:  # whatever a broken installation raises
        reason = " ".join(str(error).split()) or type(error).__name__
        return {"works": False, "reason": reason, "kernels": 0, "seconds": 0.0}
    told = None if difference <= _CLOSE else f"its probabilities differ by {difference:.2g} from plain code"
    return {"works": told is None, "reason": told, "kernels": kernels, "seconds": round(seconds, 2)}


def _compare() -> tuple[int, float, float]:
    """Return kernels compiled and their seconds, and how far probabilities of compiled code are off."""
    import numpy as np

    from maxdisc import MaxDiscClassifier
    from maxdisc.numerics.compiling import compiled_so_far, config
    from maxdisc.numerics.switches import taking

    if config.DISABLE_JIT:
        raise ValueError("NUMBA_DISABLE_JIT is set")
    y = np.arange(60) % 2
    texts = [f"{('a goal on ice', 'a rocket in orbit')[label]}, word{i % 7}" for i, label in enumerate(y)]
    table = np.random.default_rng(0).normal(y[:, None], size=(len(y), 5))
    difference = 0.0
    for X in (texts, table):
        probabilities = []
        for way in ("compiled", "plain"):
            with taking(way):
                probabilities.append(MaxDiscClassifier().fit(X, y).predict_proba(X))
        difference = max(difference, float(np.abs(probabilities[0] - probabilities[1]).max()))
    return *compiled_so_far(), difference


def _cache() -> dict[str, Any] | None:
    """Return where machine code is kept, and how much; None if there is no place for it."""
    try:
        from maxdisc.numerics.compiling import cache_folder
    except Exception:  # numba is missing or broken, which the check has said
        return None
    folder = cache_folder()
    if folder is None:
        return None
    sizes = [path.stat().st_size for path in folder.rglob("*") if path.is_file()]
    return {"folder": str(folder), "files": len(sizes), "bytes": sum(sizes)}


def _show(facts: dict[str, Any]) -> None:
    """Show all on one screen."""
    checked, cache = facts["compiled_code"], facts["cache"]
    lines = [
        ("maxdisc", f"{facts['maxdisc']}, {facts['installed']}"),
        ("code", facts["code"]),
        ("Python", f"{facts['python']}, {facts['executable']}"),
        ("platform", facts["platform"]),
        ("packages", ", ".join(f"{name} {found or 'missing'}" for name, found in facts["packages"].items())),
        ("extras", ", ".join(facts["extras"]) or "none"),
    ]
    if facts["missing"]:
        absent = [f"{extra} (lacks {', '.join(names)})" for extra, names in facts["missing"].items()]
        lines += [("not there", ", ".join(absent)), ("install with", facts["install"])]
    lines.append(("threads", f"{facts['threads']} on {facts['cores']} cores"))
    kept = "none that can be written, so every process compiles again"
    if not checked["works"] and cache is None:
        kept = "not known"
    elif cache is not None:
        kept = f"{cache['folder']}, {cache['files']:,} files, {size_of(cache['bytes'])}"
    lines.append(("cache folder", kept))
    if not checked["works"]:
        lines.append(("compiled code", f"does not work: {checked['reason']}"))
    elif checked["kernels"]:
        told = f"works; {checked['kernels']} functions compiled now, in {checked['seconds']:.1f} s"
        lines.append(("compiled code", told))
    else:
        lines.append(("compiled code", "works; nothing compiled now, all functions were in the cache"))
    say_facts(lines)
