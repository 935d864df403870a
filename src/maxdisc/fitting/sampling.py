"""Rows drawn from what was learnt: every feature from the density of a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.joint import JointDecision
from maxdisc.densities.class_densities import density_blocks
from maxdisc.families import Family
from maxdisc.families.blocks import AnyMoments, MixedMoments
from maxdisc.fitting.fitted_model import FittedModel
from maxdisc.numerics.matrices import Integers


def drawn(
    learnt: FittedModel, moments: AnyMoments, codes: Integers, rng: np.random.Generator
) -> npt.NDArray[Any]:
    """Sample rows of the given classes, shape (n, D); joint models draw their selected features together."""
    if isinstance(moments, MixedMoments):
        return _of_columns(learnt, moments, codes, rng)
    X, family = np.empty((len(codes), learnt.n_features)), learnt.family
    assert isinstance(family, Family)
    for block, densities in density_blocks(family, moments, learnt.choice.smoothing):
        values = family.sample(densities.natural[:, codes], rng) + densities.origin
        X[:, block] = np.where(densities.informative, values, densities.level)
    density = learnt.density
    if isinstance(density, JointDecision):
        X[:, density.columns] = density.sample(codes, rng)
    return X


def _of_columns(
    learnt: FittedModel, moments: MixedMoments, codes: Integers, rng: np.random.Generator
) -> npt.NDArray[np.object_]:
    """Rows of mixed columns, shape (n, D): numbers, levels by name, None where a cell is missing."""
    assert learnt.schema is not None
    parts = []
    for block, part in zip(learnt.schema.columns.blocks, moments.parts, strict=True):
        cells = np.empty((len(codes), len(block.columns)))
        for some, densities in density_blocks(block.family, part, learnt.choice.smoothing):
            values = block.family.sample(densities.natural[:, codes], rng) + densities.origin
            level = -np.inf if block.has_levels else densities.level
            cells[:, some] = np.where(densities.informative, values, level)
        parts.append(cells)
    return learnt.schema.drawn(parts)
