"""Values as JSON, and strings as bytes: what a parameter may be in a model file."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.joint import Joint
from maxdisc.divergences.class_divergences import DIVERGENCES
from maxdisc.families import FAMILIES, Categorical, Family, NumericFamily
from maxdisc.families.functions import FUNCTIONS, spelled
from maxdisc.families.support import Support
from maxdisc.model_file.container import ModelFileError, short
from maxdisc.moments.smoothing import Smoothing

# Arrays of str_ give every label the room of the longest: beyond this many characters labels are objects, so
# that no file asks for much more memory than it has bytes.
MOST_CHARACTERS = 2**20
# Lists in lists: far more than any parameter has, and far fewer than exhaust the stack of who prints them.
DEEPEST = 32


#: Categories are a family of columns, which stands in no list of families of numbers.
_FAMILIES: dict[str, Family] = {**FAMILIES, "categorical": Categorical()}


def encoded(value: Any, functions: Mapping[str, Any], what: str, depth: int = DEEPEST) -> Any:
    """Encode a value as JSON; a value that is not plain becomes an object with one key, its type."""
    if depth == 0:
        raise ModelFileError(f"{what} cannot be saved: it is nested too deeply.")

    def each(values: Any) -> list[Any]:
        return [encoded(v, functions, what, depth - 1) for v in values]

    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, numbers.Integral | np.bool_):
        return value.item() if isinstance(value, np.generic) else int(value)
    if isinstance(value, numbers.Real) and np.isfinite(float(value)):
        return float(value)
    if isinstance(value, Smoothing):
        return {"smoothing": [float(value.amount), value.target]}
    if isinstance(value, Joint):
        return {"joint": [value.covariance, value.shrinkage, value.search, value.transform]}
    for key, named in (("family", _FAMILIES), ("divergence", DIVERGENCES), ("function", functions)):
        for name, known in named.items():
            if known is value or (isinstance(value, Family) and known == value):
                return {key: name}
    if isinstance(value, NumericFamily):
        return {"numeric": _numeric_parts(value, functions, what)}
    if isinstance(value, list):
        return each(value)
    if isinstance(value, tuple):
        return {"tuple": each(value)}
    if isinstance(value, set | frozenset):
        return {"set": sorted(each(value), key=repr)}
    if isinstance(value, Mapping):
        return {"mapping": each([list(item) for item in value.items()])}
    if hasattr(value, "__array__") and np.ndim(value) == 1:
        return {"array": each(np.asarray(value).tolist())}
    shown = getattr(value, "__name__", short(value))
    raise ModelFileError(
        f"{what}={shown} cannot be saved: pass functions={{'a name': it}} to save, and again to load."
    )


def decoded(node: Any, functions: Mapping[str, Any], depth: int = DEEPEST) -> Any:
    """Return the value that :func:`encoded` wrote; raise :class:`ModelFileError` for anything else."""
    if depth == 0:
        raise ModelFileError("it has a value that is nested too deeply.")
    if node is None or isinstance(node, bool | str | int | float):
        return node
    if isinstance(node, list):
        return [decoded(value, functions, depth - 1) for value in node]
    if isinstance(node, dict) and len(node) == 1:
        ((kind, content),) = node.items()
        if kind == "function":
            return _supplied(content, functions)
        if kind in _KINDS:
            inner = decoded(content, functions, depth)
            with suppress(KeyError, TypeError, ValueError, OverflowError):
                return _KINDS[kind](inner)
    raise ModelFileError(f"it has a value that this version does not know: {short(node)}.")


#: What only files of the second format have.
_SECOND = {"numeric"}


def format_of(node: Any) -> int:
    """Return the oldest format that has all the kinds of values of a document."""
    if isinstance(node, dict):
        return 2 if _SECOND & node.keys() else max(map(format_of, node.values()), default=1)
    return max(map(format_of, node), default=1) if isinstance(node, list) else 1


def _numeric_parts(family: NumericFamily, functions: Mapping[str, Any], what: str) -> list[Any]:
    """Name, support, functions and base measure; functions of the user's own by name only."""

    def called(function: Any) -> Any:
        known = spelled(function)
        if known is None:
            return None if function is None else encoded(function, functions, f"a function of {what}")
        parts = ([_written(v) for v in p] if isinstance(p, tuple) else _written(p) for p in known[1])
        return {"call": [known[0], *parts]}

    s, problem = family.support, family.problem
    ends = [
        _written(s.low),
        _written(s.high),
        s.lattice,
        s.open_low,
        s.open_high,
        [float(a) for a in s.atoms],
    ]
    return [family.name, ends, [called(f) for f in problem.functions], called(problem.log_base)]


def _written(number: Any) -> Any:
    """Return a number as JSON has it; infinity by name."""
    return number if isinstance(number, int) else float(number) if np.isfinite(number) else str(float(number))


def _read(value: Any) -> float:
    if value in ("inf", "-inf"):
        return float(value)
    if type(value) is not float:
        raise TypeError
    return value


def _numeric(content: list[Any]) -> NumericFamily:
    name, (low, high, lattice, open_low, open_high, atoms), functions, base = content
    if not all(isinstance(flag, bool) for flag in (lattice, open_low, open_high)) or len(functions) > 64:
        raise TypeError
    support = Support(_read(low), _read(high), lattice, open_low, open_high, tuple(map(_read, atoms)))
    if not (base is None or callable(base)):
        raise TypeError
    with np.errstate(all="ignore"):
        return NumericFamily(support, tuple(functions), base, name)


def _call(content: list[Any]) -> Any:
    kind, *given = content
    due = [f.type for f in fields(FUNCTIONS[kind])]
    read: dict[str, Any] = {
        "int": _whole,
        "float": _read,
        "tuple[float, ...]": lambda values: tuple(map(_read, values)),
    }
    return FUNCTIONS[kind](*(read[str(t)](value) for t, value in zip(due, given, strict=True)))


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError
    return value


def _smoothing(content: list[Any]) -> Smoothing:
    amount, target = content
    if type(amount) is not float:
        raise TypeError
    return Smoothing(amount, target)


def _joint(content: list[Any]) -> Joint:
    covariance, shrinkage, search, transform = content
    return Joint(covariance, shrinkage, search, transform)


def _array(content: list[Any]) -> npt.NDArray[Any]:
    # Strings as objects: with room for the longest, a small file could ask for any amount of memory.
    words = all(isinstance(value, str) for value in content)
    values = np.array(content, dtype=object if words else None)
    if values.ndim != 1 or not (words or values.dtype.kind in "biuf"):
        raise ValueError
    return values


def _listed(make: Callable[[list[Any]], Any]) -> Callable[[Any], Any]:
    def made(content: Any) -> Any:
        if not isinstance(content, list):
            raise TypeError
        return make(content)

    return made


_KINDS: dict[str, Callable[[Any], Any]] = {
    "smoothing": _listed(_smoothing),
    "joint": _listed(_joint),
    "numeric": _listed(_numeric),
    "call": _listed(_call),
    "family": _FAMILIES.__getitem__,
    "divergence": DIVERGENCES.__getitem__,
    "tuple": _listed(tuple),
    "set": _listed(frozenset),
    "mapping": _listed(dict),
    "array": _listed(_array),
}


def _supplied(name: Any, functions: Mapping[str, Any]) -> Any:
    if not isinstance(name, str) or name not in functions:
        raise ModelFileError(
            f"the model was saved with a function called {short(name)}: "
            f"pass functions={{{short(name)}: the same}} to load."
        )
    return functions[name]


def encoded_strings(values: Sequence[str], what: str) -> dict[str, npt.NDArray[Any]]:
    """Strings as one run of UTF-8 bytes, and the n + 1 places where they begin and end."""
    try:
        encodings = [str(value).encode("utf-8") for value in values]
    except UnicodeEncodeError as error:
        raise ModelFileError(
            f"{what} has a string that is no valid Unicode: {short(error.object)}."
        ) from None
    offsets = np.zeros(len(encodings) + 1, dtype=np.int64)
    np.cumsum(np.array([len(encoding) for encoding in encodings], dtype=np.int64), out=offsets[1:])
    return {"bytes": np.frombuffer(b"".join(encodings), dtype=np.uint8), "offsets": offsets}


def decoded_strings(data: npt.NDArray[Any], offsets: npt.NDArray[Any], what: str) -> list[str]:
    """Return the strings of :func:`encoded_strings`; raise :class:`ModelFileError` if there are none such."""
    ends = offsets.tolist()
    run = data.tobytes()
    if not ends or ends[0] != 0 or ends[-1] != len(run) or (offsets[1:] < offsets[:-1]).any():
        raise ModelFileError(f"the places of its strings, {what}.offsets, are not in order.")
    try:
        return [run[begin:end].decode("utf-8") for begin, end in pairwise(ends)]
    except UnicodeDecodeError:
        raise ModelFileError(f"its strings, {what}.bytes, are not UTF-8.") from None


def label_type(labels: npt.NDArray[Any]) -> str:
    """Return the dtype of class labels; raise :class:`ModelFileError` if it cannot be saved."""
    dtype = labels.dtype
    if dtype.kind == "U" and labels.nbytes > 4 * MOST_CHARACTERS:
        return "|O"
    words = dtype.kind == "U" or (dtype.kind == "O" and all(type(label) is str for label in labels.tolist()))
    if not words and (dtype.kind not in "biuf" or dtype.itemsize > 8):
        raise ModelFileError(
            f"labels of type {dtype}, such as {short(labels[0])}, cannot be saved: "
            "use strings, integers or booleans."
        )
    return dtype.str


def labels_of_words(words: list[str], dtype: str) -> npt.NDArray[Any]:
    """Labels from strings, in the dtype that :func:`label_type` wrote."""
    if dtype == "|O":
        return np.array(words, dtype=object)
    width = dtype[2:]
    if dtype[:2] not in ("<U", ">U") or not (width.isascii() and width.isdigit() and len(width) < 10):
        raise ModelFileError(f"it has labels of a type that this version does not know: {short(dtype)}.")
    if max(map(len, words), default=0) > int(width) or len(words) * int(width) > MOST_CHARACTERS:
        raise ModelFileError(f"its labels do not fit their type, {short(dtype)}.")
    return np.array(words, dtype=dtype)


def labels_of_numbers(values: npt.NDArray[Any], dtype: str) -> npt.NDArray[Any]:
    """Labels from a tensor, in the dtype that :func:`label_type` wrote."""
    if dtype not in (values.dtype.str, values.dtype.newbyteorder().str):
        raise ModelFileError(f"its labels are not of the type it says, {short(dtype)}.")
    if dtype == "|b1" and (values.view(np.uint8) > 1).any():
        raise ModelFileError("its labels are booleans that are neither true nor false.")
    return values.astype(dtype)
