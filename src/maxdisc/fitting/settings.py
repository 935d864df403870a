"""What the parameters of the estimator ask for, checked once for each fit."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from maxdisc.decisions.joint import Joint
from maxdisc.divergences.class_divergences import Divergence, find_divergence, js_gm
from maxdisc.divergences.redundancy import Redundancy
from maxdisc.families import FAMILIES, Family, find_family
from maxdisc.families.blocks import AnyFamily
from maxdisc.moments.smoothing import Smoothing
from maxdisc.numerics.matrices import Floats, Integers, Matrix, is_sparse
from maxdisc.numerics.phases import phases_told_to
from maxdisc.rows.column_families import (
    require_families,
    require_one_family,
    schema_of_totals,
    settled_schema,
    takes_columns,
    takes_columns_of_frames,
)
from maxdisc.rows.frames import Cells, holds_numbers
from maxdisc.rows.row_sources import Folds, HashFolds
from maxdisc.rows.schema import Schema
from maxdisc.rows.table_totals import TableTotals
from maxdisc.rows.validation import (
    given_class_weight,
    given_prior,
    given_redundancy,
    given_size,
    given_smoothing,
    given_structure,
    given_unlabelled,
    require_one_of,
)
from maxdisc.selection.fold_models import Choice, Rule


@dataclass(frozen=True, eq=False)
class Settings:
    """Validated parameters of :class:`maxdisc.MaxDiscClassifier`."""

    family: Any
    divergence: Divergence
    #: Whether the rows decide what features are ranked by.
    chooses_divergence: bool
    n_features: Any
    joint: Joint | None
    is_automatic: bool
    class_weight: Mapping[Any, float] | str | None
    evidence: str
    smoothing: Smoothing | None
    redundancy: float
    rule: Rule
    cv: Any
    random_state: Any
    prior: Any
    unlabelled: Any
    categorical_features: Any
    missing: str
    verbose: int

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """From parameters by name; raise ``ValueError`` for what is none, or does not go together."""
        joint = given_structure(given["structure"])
        if joint is not None:
            _require_joint(given)
        require_one_of("evidence", given["evidence"], ("auto", "raw", "calibrated", "refined"))
        require_one_of("rule", given["rule"], ("auto", "best", "one_se", "small"))
        redundancy = given_redundancy(given["redundancy"])
        given_unlabelled(given["unlabelled"])
        require_families(given["family"])
        require_one_of("missing", given["missing"], ("ignore", "informative"))
        is_open = isinstance(given["divergence"], str) and given["divergence"] == "auto"
        divergence = js_gm if is_open else find_divergence(given["divergence"])
        given_size(given["n_features"])
        return cls(
            family=given["family"],
            divergence=divergence,
            chooses_divergence=is_open,
            n_features=given["n_features"],
            joint=joint,
            is_automatic=isinstance(given["structure"], str) and given["structure"] == "auto",
            class_weight=given_class_weight(given["class_weight"]),
            evidence=given["evidence"],
            smoothing=given_smoothing(given["smoothing"]),
            redundancy=redundancy,
            rule=cast(Rule, given["rule"]),
            cv=given["cv"],
            random_state=given["random_state"],
            prior=given["prior"],
            unlabelled=given["unlabelled"],
            categorical_features=given["categorical_features"],
            missing=given["missing"],
            verbose=given["verbose"],
        )

    def say(self, line: str) -> None:
        """Print a line if ``verbose``; at once, so that a notebook shows it while the fit goes on."""
        if self.verbose:
            print(f"maxdisc: {line}", flush=True)

    def told(self) -> AbstractContextManager[None]:
        """Print each phase that begins in a block, if ``verbose``."""
        return phases_told_to(self.say) if self.verbose else nullcontext()

    @property
    def must_choose(self) -> bool:
        """Whether anything is left to be chosen on folds."""
        settled = self.smoothing is not None if self.joint is None else self.joint.settled
        return self.n_features == "auto" or not settled or self.evidence != "raw"

    @property
    def jointly(self) -> Settings:
        """These settings with joint densities, of which all is open."""
        return replace(self, joint=Joint())

    def may_join(self, n_features: int) -> bool:
        """Return whether the rows decide on joint densities, and nothing was asked for that these lack.

        The two transforms of an average rank features differently: together they keep more than a number.
        """
        is_plain = isinstance(self.family, str) and self.family == "auto" and self.smoothing is None
        is_numeric = self.categorical_features is None and self.missing == "ignore"
        is_open = (
            self.size(n_features) in (None, n_features) and not self.redundancy and self.evidence != "raw"
        )
        return self.is_automatic and is_plain and is_numeric and is_open

    @property
    def may_refine(self) -> bool:
        """Return whether evidence is refined where the rows allow it."""
        return self.evidence in ("auto", "refined")

    @property
    def may_select_pairs(self) -> bool:
        """Return whether held-out documents may ask for pairs of words."""
        return self.may_refine and self.joint is None and self.n_features == "auto"

    def size(self, n_features: int) -> int | None:
        """How many of so many features are asked for; None if that is chosen on the folds."""
        return given_size(self.n_features, n_features)

    def prior_among(self, classes: npt.NDArray[np.generic]) -> Floats | None:
        """The class probabilities asked for, shape (C,); None for those of the data."""
        return given_prior(self.prior, classes)

    def reranking(self, n_features: int) -> Redundancy | None:
        """How features are re-ranked, if at all."""
        return Redundancy.of(self.redundancy, self.size(n_features))

    def usual(self, family: AnyFamily, n_features: int) -> Choice:
        """What the parameters say, or else the usual smoothing and all features."""
        return Choice(self.smoothing or family.usual_smoothing, self.size(n_features) or n_features)

    def hash_folds(self) -> Sequence[Folds]:
        """The folds of a source of rows: by a hash of the row, where anything is to be chosen."""
        if not (isinstance(self.cv, numbers.Integral) and int(self.cv) >= 2) and self.cv != "hash":
            raise ValueError(f"a source of rows takes cv='hash' or a number of folds, got cv={self.cv!r}.")
        return [HashFolds(5 if self.cv == "hash" else int(self.cv))] if self.must_choose else ()

    def reads_columns(self, X: Any) -> bool:
        """Return whether each column of training rows gets a family of its own."""
        if self.joint is not None:
            return False
        columns = takes_columns(X, self.family, self.categorical_features, self.missing)
        return columns and not (self._has_one_family and holds_numbers(X))

    @property
    def _has_one_family(self) -> bool:
        """Whether redundancy has the columns of a frame share a family, if all are numbers."""
        asked = self.categorical_features is not None or self.missing == "informative"
        return self.redundancy > 0 and isinstance(self.family, str) and self.family == "auto" and not asked

    def schema(
        self,
        frame: Any,
        cells: Cells,
        names: npt.ArrayLike | None,
        rows: tuple[Integers, int, Floats] | None,
    ) -> Schema:
        """The families of all columns; see :func:`maxdisc.rows.column_families.settled_schema`."""
        informative = self.missing == "informative"
        return settled_schema(frame, cells, names, self.family, self.categorical_features, informative, rows)

    @property
    def settles_by_totals(self) -> bool:
        """Whether families must not depend on the order of rows; functions of a frame have to look at it."""
        selectors = [self.categorical_features, *(self.family if isinstance(self.family, Mapping) else ())]
        return isinstance(self.cv, str) and self.cv == "hash" and not any(map(callable, selectors))

    def reads_frames(self) -> bool:
        """Whether the columns of frames in batches are told apart."""
        given = (self.family, self.categorical_features, self.missing)
        return self.joint is None and takes_columns_of_frames(*given)

    def schema_of(self, totals: TableTotals, classes: npt.NDArray[np.generic]) -> Schema:
        """The families of all columns by sums over all rows, in memory or not."""
        informative = self.missing == "informative"
        return schema_of_totals(totals, self.family, self.categorical_features, informative, classes)

    def family_of(self, X: Matrix) -> Family:
        """The one family of all features of some rows."""
        if isinstance(self.family, Mapping) or self.family != "auto":
            require_one_family("these rows have one family", self.family)
            return find_family(self.family)
        counts = is_sparse(X) and (X.nnz == 0 or X.data.min() >= 0)
        return FAMILIES["poisson" if counts else "gaussian"]

    def require_mixable(self, columns: bool) -> None:
        """Raise ``ValueError`` for what columns that are told apart cannot have."""
        if columns and self.redundancy:
            raise ValueError(
                "redundancy is of numbers of one family, and X has other columns: leave them out, or use "
                "redundancy=0.0."
            )

    def require_single_features(self, method: str) -> None:
        """Raise ``ValueError`` where sums for each feature alone, which batches add to, are not enough."""
        if self.joint is not None:
            what, instead = "a joint density", "structure='independent'"
        elif self.redundancy > 0:
            what, instead = f"redundancy={self.redundancy!r}", "redundancy=0.0"
        else:
            return
        raise ValueError(no_pairs(method, what, instead))


def no_pairs(method: str, what: str, instead: str) -> str:
    """Why a method cannot be used, and what can."""
    return (
        f"{method} keeps sums for each feature alone, and {what} needs those of pairs: use fit or fit_rows, "
        f"or {instead}."
    )


def _require_joint(given: Mapping[str, Any]) -> None:
    """Raise ``ValueError`` for what joint densities cannot have."""
    family = given["family"]
    asked = given["categorical_features"] is not None or given["missing"] == "informative"
    if asked or (family != "auto" and not _is_gaussian(family)):
        raise ValueError(
            f"joint densities are Gaussian: use family='auto', not {family!r}, or structure='independent'."
        )
    if given["redundancy"]:
        raise ValueError(
            "joint densities know what features share: use redundancy=0.0, or Joint(search='greedy')."
        )


def _is_gaussian(family: Any) -> bool:
    return not isinstance(family, Mapping) and find_family(family).name == "gaussian"
