"""Mixed columns in model files: the schema, and the decision and moments of every block."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import BlockDecision, MixedDecision
from maxdisc.families import Family
from maxdisc.families.blocks import Block, MixedMoments
from maxdisc.model_file.container import ModelFileError, short
from maxdisc.model_file.fields import FIELDS, Array, Field
from maxdisc.model_file.soundness import is_normalised
from maxdisc.rows.frames import EMPTY, WORD, Levels
from maxdisc.rows.schema import Schema, plain_family

if TYPE_CHECKING:  # which imports this module
    from maxdisc.model_file.reading import Shelf

#: More families than this no model has.
_MOST_FAMILIES = 64


def put_schema(put: Callable[[str, Array], None], schema: Schema) -> None:
    """The arrays of a schema; its families and the words of its levels are kept elsewhere."""
    put("schema.kinds", schema.kinds.astype(np.int64))
    put("schema.categories", schema.categories)
    put("schema.keys", schema.levels.keys)
    put("schema.informative", schema.informative)
    put("schema.automatic", schema.automatic)
    for place, (_, columns) in enumerate(schema.families):
        put(f"schema.family{place}", columns)


def put_blocks(put: Callable[[str, Array], None], decision: MixedDecision) -> None:
    """The arrays of the decision."""
    put("decision.columns", decision.columns)
    put("decision.log_prior", decision.log_prior)
    for place, part in enumerate(decision.parts):
        # Of a block of which no column is kept nothing is written: no tensor may be empty.
        for field in FIELDS[LinearDecision] if len(part.places) else ():
            if field != "log_prior":
                put(f"block{place}.{field}", getattr(part.decision, field))
        if len(part.places):
            put(f"block{place}.places", part.places)


def schema_of(shelf: Shelf, node: Any) -> Schema:
    """Return the schema that a file describes: every column has one family, and every level its column."""
    if not isinstance(node, list) or len(node) > _MOST_FAMILIES:
        raise ModelFileError(f"its families are {short(node)}, which are invalid.")
    # Any subclass will do: it is only asked whether the value is one.
    families = [shelf.known(family, Family, "family") for family in node]  # type: ignore[type-abstract]  # as said
    kinds = shelf.array("schema.kinds", Field("D", np.int64))
    own = replace(shelf, lengths={})
    columns = [own.array(f"schema.family{place}", Field(f"{place}", np.int64)) for place in range(len(node))]
    categories, keys, informative, automatic = (
        own.array(f"schema.{name}", Field(name[0], np.int64))
        for name in ("categories", "keys", "informative", "automatic")
    )
    words = shelf.strings("schema.words")
    levels = Levels(np.array(words, dtype=object), keys)
    n_columns = len(kinds)
    every = np.concatenate([categories, *columns])
    sound = (
        ((kinds >= 0) & (kinds <= EMPTY)).all()
        and np.array_equal(np.sort(every), np.arange(n_columns))
        and all(len(at) > 0 and _rising(at) for at in columns)
        and all(_rising(at) for at in (categories, keys, informative, automatic))
        and all(a < b for a, b in pairwise(words))
        and (len(keys) == 0) == (len(words) == 0)
        and (keys >= 0).all()
        and np.isin(levels.columns, categories).all()
        and np.isin(np.flatnonzero(kinds == WORD), categories).all()
        and all(((at >= 0) & (at < n_columns)).all() for at in (informative, automatic))
    )
    schema = Schema(
        kinds.astype(np.int8),
        list(zip(families, columns, strict=True)),
        categories,
        levels,
        informative,
        automatic,
    )
    if not sound or plain_family(schema) is not None or not len(schema.columns.blocks):
        raise ModelFileError("its columns are not described as columns are.")
    return schema


def _rising(values: Array) -> bool:
    return bool((np.diff(values) > 0).all())


def decision_of(shelf: Shelf, schema: Schema) -> MixedDecision:
    """Return the decision of a file, of which every cell belongs to a kept column."""
    columns = shelf.array("decision.columns", Field("K", np.int64))
    log_prior = shelf.array("decision.log_prior", Field("C", finite=False))
    n_classes, n_kept = len(log_prior), len(columns)
    parts = []
    for place, block in enumerate(schema.columns.blocks):
        own = replace(shelf, lengths={"C": n_classes, "L": block.family.n_statistics})
        if not shelf.has(f"block{place}.columns"):
            parts.append(_silent(block, n_classes))
            continue
        arrays = {
            name: own.array(f"block{place}.{name}", field)
            for name, field in FIELDS[LinearDecision].items()
            if name != "log_prior"
        }
        decision = LinearDecision(family=block.family, log_prior=np.zeros(n_classes), **arrays)
        places, cells = own.array(f"block{place}.places", Field("K", np.int64)), decision.columns
        inside = ((cells >= 0) & (cells < len(block.columns))).all() and len(np.unique(cells)) == len(cells)
        kept = ((places >= 0) & (places < n_kept)).all() and (np.diff(places) >= 0).all()
        known = ((columns >= 0) & (columns < len(schema.kinds))).all()
        if not (inside and kept and known and np.array_equal(block.columns[cells], columns[places])):
            raise ModelFileError("the blocks of its decision do not fit its columns.")
        if not is_normalised(decision):
            raise ModelFileError("the blocks of its decision are invalid.")
        parts.append(BlockDecision(decision, places, block.has_levels))
    for block, part in zip(schema.columns.blocks, parts, strict=True):
        if np.isin(block.columns, columns).sum() != len(part.places):
            raise ModelFileError("the blocks of its decision do not have all cells of its columns.")
    return MixedDecision(columns, parts, log_prior)


def _silent(block: Block, n_classes: int) -> BlockDecision:
    """Return the decision of a block of which no column is kept."""
    none = np.empty(0, dtype=np.intp)
    weights, prior = np.empty((block.family.n_statistics, n_classes, 0)), np.zeros(n_classes)
    decision = LinearDecision(block.family, none, np.empty(0), weights, np.empty((n_classes, 0)), prior)
    return BlockDecision(decision, none, block.has_levels)


def moments_of(shelf: Shelf, schema: Schema) -> MixedMoments:
    """Return the moments of a file, block by block, all of the same rows."""
    parts = [
        shelf.moments(f"moments{place}", block.family, len(block.columns))
        for place, block in enumerate(schema.columns.blocks)
    ]
    if any(
        part.observed is None and block.has_levels
        for part, block in zip(parts, schema.columns.blocks, strict=True)
    ):
        raise ModelFileError("its moments are invalid.")
    if any(not np.array_equal(part.weight, parts[0].weight) for part in parts):
        raise ModelFileError("its moments are not of the same rows.")
    return MixedMoments(parts, len(schema.kinds))
