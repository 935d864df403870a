"""``info``: what a model file holds."""

from __future__ import annotations

from typing import Any

from maxdisc.cli.console import calibration_line, say_facts, say_json, size_of, unlabelled_line
from maxdisc.cli.failures import BadInputError, command
from maxdisc.cli.options import JsonOption, ModelArgument

#: Kinds of steps whose features are described jointly.
JOINT = ("joint", "averaged")


@command
def info(model: ModelArgument, json: JsonOption = False) -> None:
    """Show what a model file holds, without loading the model.

    [bold]Example[/]

    maxdisc info topics.maxdisc
    """
    if not model.exists():
        raise BadInputError(f"{model} does not exist.")
    from maxdisc.model_file.persistence import describe

    facts = {"file": str(model), "bytes": model.stat().st_size, **describe(model)}
    if json:
        say_json(facts)
    else:
        _show_info(facts)


def _show_info(facts: dict[str, Any]) -> None:
    from maxdisc.inspection.safe_text import counted, shortened
    from maxdisc.model_file.about import remembered

    about = remembered(facts["about"])
    changed = _unusual(facts["steps"])
    lines = [
        ("file", f"{facts['file']}, {size_of(facts['bytes'])}, format {facts['format']}"),
        ("written by", f"maxdisc {facts['maxdisc']}"),
        *_learnt(facts["steps"]),
        ("settings", ", ".join(f"{k}={v}" for k, v in changed.items()) or "all defaults"),
    ]
    if "rows" in about:
        sources = shortened(", ".join(about.get("sources", [])), 160)
        lines.insert(2, ("fitted on", counted(about["rows"], "row") + (f" of {sources}" if sources else "")))
    lines += [("note", shortened(about["note"], 160))] if "note" in about else []
    lines += [(f"{role} column", about[role]) for role in ("text", "label") if about.get(role)]
    if "readings" in about:
        from maxdisc.files import Reading, summary

        read = summary({name: Reading.of(stored, name) for name, stored in about["readings"].items()})
        lines += [("read as", read)] if read else []
    largest = sorted(facts["tensors"].items(), key=lambda item: -item[1]["bytes"])[:3]
    lines.append(("largest parts", ", ".join(f"{name} {size_of(t['bytes'])}" for name, t in largest)))
    say_facts(lines)


def _learnt(steps: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Return what kind of model it is, and how much it knows."""
    from maxdisc.inspection.safe_text import shortened

    last, is_text = steps[-1], steps[0]["kind"] == "vectorizer"
    if last["kind"] == "vectorizer":
        return [("kind", "words alone, without a classifier"), ("words", f"{last['n_features']:,}")]
    if last["kind"] == "scaler":
        return [("kind", "a scaler of counts, without a classifier"), ("features", f"{last['n_features']:,}")]
    classes = shortened(", ".join(map(str, last["classes"])), 160)
    return [
        ("kind", "text" if is_text else "table"),
        ("classes", f"{len(last['classes'])}: {classes}"),
        ("words" if is_text else "features", f"{last['n_selected']:,} of {last['n_features']:,} selected"),
        *_families(last),
        *([("unlabelled", unlabelled_line(last["unlabelled"]))] if "unlabelled" in last else []),
        *_weighed(last),
        ("goes on learning", _goes_on(last)),
    ]


def _families(step: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the family of the densities, or how many columns are of each."""
    counts = step.get("families", {})
    if step["kind"] in JOINT:
        return [("family", "gaussian, one joint density of the selected features")]
    if len(counts) == 1:
        return [("family", next(iter(counts)))]
    told = ", ".join(f"{n:,} {name}" for name, n in counts.items())
    return [("families", told)] if told else []


def _weighed(step: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the facts of the calibration, if any."""
    if step.get("evidence") is None:
        return []
    told = step["evidence"]
    kind = "refined" if told["corrected"] else "calibrated"
    return [("calibration", calibration_line({"kind": kind, **told}, told["log_loss"]))]


def _goes_on(step: dict[str, Any]) -> str:
    if step["kind"] == "discriminative":
        return "no (it is discriminative)"
    if step["kind"] in JOINT and step["parameters"].get("structure") != "auto":
        return "no (features are described jointly)"
    if step["kind"] in JOINT and step["moments"]:
        return "yes, with independent features"
    return "yes" if step["moments"] else "no (written without --keep-moments)"


def _unusual(steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the parameters that are not the defaults."""
    from maxdisc import DiscriminativeMaxEnt, MaxDiscClassifier
    from maxdisc.words.scaling import CountScaler
    from maxdisc.words.vectorizer import TermFrequencyVectorizer

    usual = {
        **dict.fromkeys(
            ("classifier", "weighed", "joint", "averaged", "mixed"), MaxDiscClassifier().get_params()
        ),
        "discriminative": DiscriminativeMaxEnt().get_params(),
        "vectorizer": TermFrequencyVectorizer().get_params(),
        "scaler": CountScaler().get_params(),
    }
    out = {}
    for step in steps:
        given = {name: _plain(value) for name, value in step["parameters"].items()}
        out.update({name: value for name, value in given.items() if value != usual[step["kind"]].get(name)})
    if isinstance(out.get("stop_words"), list):
        out["stop_words"] = f"{len(out['stop_words'])} words"
    return out


def _plain(value: Any) -> Any:
    """JSON has no tuples, joint densities or families by column; the file says where there was one."""
    if isinstance(value, dict) and "mapping" in value:
        return ", ".join(f"{column}: {_plain(family)}" for column, family in value["mapping"]).join("{}")
    if isinstance(value, dict) and "joint" in value:
        return f"Joint{tuple(value['joint'])}"
    return tuple(value["tuple"]) if isinstance(value, dict) and "tuple" in value else value
