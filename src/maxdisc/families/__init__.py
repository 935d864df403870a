"""Families of maximum-entropy densities, one file each."""

from __future__ import annotations

from maxdisc.families.bernoulli import Bernoulli
from maxdisc.families.beta import Beta
from maxdisc.families.categorical import Categorical
from maxdisc.families.exponential import Exponential
from maxdisc.families.family import Family
from maxdisc.families.functions import moments
from maxdisc.families.gamma import Gamma
from maxdisc.families.gaussian import Gaussian
from maxdisc.families.geometric import Geometric
from maxdisc.families.hurdle import Hurdle
from maxdisc.families.numeric import NumericFamily
from maxdisc.families.poisson import Poisson
from maxdisc.families.support import Support

__all__ = [
    "Bernoulli",
    "Beta",
    "Categorical",
    "Exponential",
    "Family",
    "Gamma",
    "Gaussian",
    "Geometric",
    "Hurdle",
    "NumericFamily",
    "Poisson",
    "Support",
    "moments",
]

#: Every family that has a name.
FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Exponential(),
        Gaussian(),
        Bernoulli(),
        Geometric(),
        Poisson(),
        Gamma(),
        Beta(),
        Hurdle(),
    )
}


def find_family(family: str | Family) -> Family:
    """Return the family with that name, or the family itself."""
    if isinstance(family, Family):
        return family
    if isinstance(family, str) and family in FAMILIES:
        return FAMILIES[family]
    raise ValueError(
        f"unknown family {family!r}: give one of {', '.join(map(repr, FAMILIES))}, or a Family object."
    )
