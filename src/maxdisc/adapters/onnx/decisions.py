"""Decisions as ONNX nodes: scores (n, C) whose softmax is the posterior."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from maxdisc.adapters.onnx.graph import Graph
from maxdisc.adapters.onnx.inputs import Inputs
from maxdisc.adapters.onnx.statistics import outside, statistics
from maxdisc.decisions.by_length import LengthDecision
from maxdisc.decisions.joint import JointDecision
from maxdisc.decisions.joint_average import AveragedDecision, LinearForm, finite
from maxdisc.decisions.linear import LinearDecision
from maxdisc.decisions.mixed import BlockDecision, MixedDecision
from maxdisc.families import Family, Gaussian
from maxdisc.families.support import Support
from maxdisc.numerics.matrices import Booleans, Floats, Integers
from maxdisc.rows.frames import WORD
from maxdisc.rows.schema import Schema

#: What stands in for a missing cell until its statistics are set to 0.
ANY_VALUE = 0.5


def plain_scores(
    graph: Graph,
    decision: LinearDecision | JointDecision | AveragedDecision | LengthDecision,
    family: Family,
    inputs: Inputs,
) -> str:
    """Scores of rows of numbers of one family; NaN for a row that has a value which the family cannot have.

    Of joint densities also for a row with a missing cell: to integrate it out takes the inverse of another
    matrix for every pattern of missing cells, and no operator has that.
    """
    X = inputs.numbers(np.arange(inputs.n_columns))
    kept = graph.columns(X, decision.columns)
    if isinstance(decision, LinearDecision):
        terms = linear_terms(graph, decision, kept)
        scores = graph.add("Add", graph.total(terms), graph.constant(decision.log_prior))
    elif isinstance(decision, LengthDecision):
        scores = _scores_by_length(graph, decision, kept)
    elif isinstance(decision, JointDecision):
        scores = _joint_scores(graph, decision, kept)
    else:
        scores = _averaged_scores(graph, decision, X)
    return _refused(graph, scores, [(outside(graph, family, X), inputs.n_columns)])


def _scores_by_length(graph: Graph, decision: LengthDecision, kept: str) -> str:
    """Scores of rows scaled over the selected features, weighed by how many of these they have."""
    lengths, n_classes = decision.lengths, decision.n_classes
    zero, ones = graph.constant(0.0), np.ones((len(decision.columns), 1))
    kept = graph.add("Where", graph.add("IsNaN", kept), zero, kept)
    present = graph.cast(graph.add("Not", graph.add("Equal", kept, zero)))
    size = graph.add("Sqrt", graph.product(graph.add("Mul", kept, kept), ones))
    size = graph.add("Where", graph.add("Greater", size, zero), size, graph.constant(1.0))
    scaled = graph.add("Mul", kept, graph.add("Div", graph.constant(lengths.length), size))
    # Linear interpolation: a start, and a bend at each of the numbers.
    knots = np.log1p(lengths.counts)
    values = np.hstack([lengths.weights, decision.log_prior + lengths.bias])
    slopes = np.diff(values, axis=0) / np.diff(knots)[:, None]
    bends = np.diff(slopes, axis=0, prepend=0.0, append=0.0)
    at = graph.log1p(graph.product(present, ones))
    beyond = graph.add("Relu", graph.less(at, knots[None, :]))
    weighed = graph.add("Add", graph.product(beyond, bends), graph.constant(values[0]))
    parts = [graph.product(scaled, weights.T) for weights in decision.weights]
    terms = [
        graph.add("Mul", part, graph.columns(weighed, np.array([place]))) for place, part in enumerate(parts)
    ]
    return graph.total([*terms, graph.columns(weighed, 2 + np.arange(n_classes))])


def _refused(graph: Graph, scores: str, conditions: list[tuple[str, int]]) -> str:
    """Scores, NaN in rows where a condition (n, width) holds somewhere."""
    rows = graph.either([graph.any_of_row(condition, width) for condition, width in conditions])
    return graph.add("Where", rows, graph.constant(np.nan), scores)


def linear_terms(graph: Graph, decision: LinearDecision, kept: str) -> list[str]:
    """Return the terms that sum to the evidence of the selected features (n, K), without the prior.

    A missing cell takes part in no product: neither its statistics nor its normaliser count.
    """
    far = decision.apart(sparse=False) & isinstance(decision.family, Gaussian)
    terms: list[str] = []
    if not far.all():
        near = np.flatnonzero(~far)
        terms += _near_terms(graph, decision, graph.columns(kept, near) if far.any() else kept, near)
    if far.any():
        terms += _far_terms(graph, decision, graph.columns(kept, np.flatnonzero(far)), far)
    return terms


def _near_terms(graph: Graph, decision: LinearDecision, values: str, at: Integers) -> list[str]:
    missing = graph.add("IsNaN", values)
    shifted = graph.less(values, decision.origin[at])
    filled = graph.add("Where", missing, graph.constant(ANY_VALUE), shifted)
    zero, terms = graph.constant(0.0), []
    for weights, plane in zip(decision.weights, statistics(graph, decision.family, filled), strict=True):
        observed = graph.add("Where", missing, zero, plane)
        terms.append(graph.product(observed, weights[:, at].T))
    present = graph.cast(graph.add("Not", missing))
    return [*terms, graph.product(present, -decision.baseline[:, at].T)]


def _far_terms(graph: Graph, decision: LinearDecision, values: str, far: Booleans) -> list[str]:
    """Log densities of Gaussians many deviations away from the origin, by distances from class means."""
    strength = np.ones(int(far.sum())) if decision.strength is None else decision.strength[far]
    first, second = decision.weights[:, :, far] / strength
    missing = graph.add("IsNaN", values)
    shifted, zero = graph.less(values, decision.origin[far]), graph.constant(0.0)
    squares = []
    for c in range(decision.n_classes):
        gap = graph.add("Sub", shifted, graph.constant(-first[c] / (2 * second[c])))
        gap = graph.add("Where", missing, zero, gap)
        squares.append(graph.product(graph.add("Mul", gap, gap), (strength * second[c])[:, None]))
    together = graph.add("Concat", *squares, axis=1)
    constant = 0.5 * strength * np.log(-second / np.pi)
    return [together, graph.product(graph.cast(graph.add("Not", missing)), constant.T)]


def _centred(graph: Graph, values: str, origin: Floats, unit: Floats | None) -> str:
    """``t(x) - origin``, with t a logarithm on either side of 0 where there is a unit."""
    if unit is not None:
        sign = graph.add("Sign", values)
        size = graph.log1p(graph.add("Div", graph.add("Abs", values), graph.constant(unit)))
        values = graph.add("Mul", sign, size)
    return graph.less(values, origin)


def _joint_scores(graph: Graph, decision: JointDecision, kept: str) -> str:
    """Log densities of multivariate Gaussians, up to what all classes share, and the log prior."""
    centred = _centred(graph, kept, decision.origin, decision.unit)
    if decision.linear:
        # Rates go into the weights: onnxruntime merges a single factor before a product in single precision.
        evidence = graph.product(centred, (decision.weights * decision.rate).T)
        constant = -0.5 * (decision.weights * decision.center).sum(axis=1)
    else:
        forms = []
        z = graph.add("Mul", centred, graph.constant(decision.rate))
        for c in range(decision.n_classes):
            group = 0 if decision.shared else c
            gap = graph.add("Sub", z, graph.constant(decision.center[c]))
            along = graph.product(gap, decision.factor[group].T)
            inside = _squared_length(graph, along, decision.factor.shape[1])
            form = graph.add("Sub", _squared_length(graph, gap, len(decision.columns)), inside)
            forms.append(graph.add("Mul", form, graph.constant(-0.5 * decision.tail[group])))
        evidence = graph.add("Concat", *forms, axis=1)
        constant = np.zeros(decision.n_classes) if decision.shared else decision.constant
    return graph.add("Add", evidence, graph.constant(constant + decision.log_prior))


def _squared_length(graph: Graph, rows: str, width: int) -> str:
    return graph.product(graph.add("Mul", rows, rows), np.ones((width, 1)))


def _averaged_scores(graph: Graph, decision: AveragedDecision, X: str) -> str:
    """Return the average of joint models as linear forms, or the best of them with its trust."""
    if decision.forms:
        evidence = graph.total([_form(graph, form, X) for form in decision.forms])
        constant = np.sum([form.baseline.sum(axis=1) for form in decision.forms], axis=0)
        return graph.add("Add", evidence, graph.constant(constant + decision.log_prior))
    density = decision.density
    shares = finite(decision.log_prior) if decision.log_shares is None else decision.log_shares
    # Of rows that have all cells; a row that lacks some is NaN here, and refused.
    level = (decision.trust - 1) * shares * bool(len(density.columns))
    alone = replace(density, log_prior=np.zeros(decision.n_classes))
    evidence = _joint_scores(graph, alone, graph.columns(X, density.columns))
    evidence = graph.add("Mul", evidence, graph.constant(decision.trust))
    return graph.add("Add", evidence, graph.constant(level + decision.log_prior))


def _form(graph: Graph, form: LinearForm, X: str) -> str:
    centred = _centred(graph, graph.columns(X, form.columns), form.origin, form.unit)
    return graph.product(centred, (form.weights * form.rate).T)


def mixed_scores(graph: Graph, decision: MixedDecision, schema: Schema, inputs: Inputs) -> str:
    """Scores of the rows of a table whose columns have families of their own.

    A value that a family which was chosen by the values cannot have is no evidence, and so is a level that
    was never seen; one that a family which the user chose cannot have makes the row NaN.
    """
    terms: list[str] = []
    refused: list[tuple[str, int]] = []
    parts = iter(decision.parts)
    for family, columns in schema.families:
        part, values = next(parts), _possible(graph, family, columns, schema, inputs)
        refused.append((outside(graph, family, values), len(columns)))
        if len(part.places):
            terms += linear_terms(graph, part.decision, graph.columns(values, part.decision.columns))
    if len(schema.categories):
        terms += _level_terms(graph, next(parts), schema, inputs)
    if len(schema.informative):
        part = next(parts)
        if len(part.places):
            missing = _missing(graph, schema.informative[part.decision.columns], schema, inputs)
            terms += linear_terms(graph, part.decision, missing)
    scores = graph.add("Add", graph.total(terms), graph.constant(decision.log_prior))
    return _refused(graph, scores, refused) if refused else scores


def _possible(graph: Graph, family: Family, columns: Integers, schema: Schema, inputs: Inputs) -> str:
    """Return the numbers of a block, NaN where a family that its values have suggested cannot have them."""
    values, chosen = inputs.numbers(columns), np.isin(columns, schema.automatic)
    if not chosen.any() or family.support == Support():
        return values
    cannot = graph.add("And", outside(graph, family, values, alone=True), graph.constant(chosen))
    finite_ = graph.add("Less", graph.add("Abs", values), graph.constant(np.inf))
    return graph.add("Where", graph.add("And", cannot, finite_), graph.constant(np.nan), values)


def _level_terms(graph: Graph, part: BlockDecision, schema: Schema, inputs: Inputs) -> list[str]:
    """Return what the levels of each kept column of categories add; nothing if it was never seen."""
    cells, weights = part.decision.columns, part.decision.weights[0].T
    of_cell, names = schema.levels.columns[cells], schema.levels.names[cells]
    terms = []
    for column in np.unique(of_cell).tolist():
        here = np.flatnonzero(of_cell == column)
        levels, table = names[here].tolist(), weights[here]
        if schema.kinds[column] == WORD:
            at = _places_of(graph, inputs.words(column), levels)
            unseen = np.zeros((1, table.shape[1]))
            terms.append(graph.add("Gather", graph.constant(np.concatenate([table, unseen])), at, axis=0))
        else:
            # Levels of a column of numbers are numbers, as they are written.
            numbers = graph.constant(np.array([[float(level) for level in levels]]))
            equal = graph.add("Equal", inputs.numbers(np.array([column])), numbers)
            terms.append(graph.product(graph.cast(equal), table))
    return terms


def _places_of(graph: Graph, words: str, levels: list[str]) -> str:
    """Return the positions of words (n,) in a list; its length for other words."""
    return graph.add(
        "LabelEncoder",
        words,
        domain="ai.onnx.ml",
        version=2,
        keys_strings=levels,
        values_int64s=list(range(len(levels))),
        default_int64=len(levels),
    )


def _missing(graph: Graph, at: Integers, schema: Schema, inputs: Inputs) -> str:
    """Return which cells of some columns are missing (n, k), as 0 and 1.

    A tensor of strings has no missing cells: an empty string is one, unless it is a level of its column.
    """
    parts = []
    for column in at.tolist():
        if schema.kinds[column] != WORD:
            lacking = graph.cast(graph.add("IsNaN", inputs.numbers(np.array([column]))))
        else:
            words = inputs.words(column)
            levels = set(schema.levels.names[schema.levels.columns == column].tolist())
            at_empty = -1 if "" in levels else 0  # no word is at -1: then no cell is missing
            empty = graph.add("Equal", _places_of(graph, words, [""]), graph.constant(at_empty))
            lacking = graph.add("Reshape", graph.cast(empty), graph.constant([-1, 1]))
        parts.append(lacking)
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)
