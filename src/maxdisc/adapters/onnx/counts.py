"""Converters of what stands before a classifier: counted words, and scaled counts."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto
from skl2onnx.common.data_types import DoubleTensorType, StringTensorType
from sklearn.utils.validation import check_is_fitted

from maxdisc.adapters.onnx.graph import Graph
from maxdisc.words.scaling import CountScaler
from maxdisc.words.vectorizer import TermFrequencyVectorizer

#: The node that stops a run at a count that is negative or no number, as the scaler does.
GUARD = "maxdisc_counts_must_not_be_negative_or_missing"
#: What fills up documents of fewer words than the longest: no word.
PADDING = "#"
#: Where upper and lower case are taken from. A runtime on Linux has this one without more being installed.
LOCALE = "C.UTF-8"


def vectorizer_shapes(operator: Any) -> None:
    """The type of scaled counts (n, D)."""
    (documents,) = operator.inputs
    if not isinstance(documents.type, StringTensorType):
        raise ValueError(
            "TermFrequencyVectorizer reads documents: its input to the graph must have strings, such as "
            "StringTensorType([None])."
        )
    check_is_fitted(operator.raw_operator, "terms_")
    n_rows = documents.get_first_dimension()
    operator.outputs[0].set_type(DoubleTensorType([n_rows, operator.raw_operator._n_terms]))


def scaler_shapes(operator: Any) -> None:
    """The type of scaled counts (n, D)."""
    check_is_fitted(operator.raw_operator)
    n_rows = operator.inputs[0].get_first_dimension()
    operator.outputs[0].set_type(DoubleTensorType([n_rows, int(operator.raw_operator.n_features_in_)]))


def convert_vectorizer(scope: Any, operator: Any, container: Any) -> None:
    """The nodes of a :class:`maxdisc.TermFrequencyVectorizer`.

    Words are found by onnxruntime's own ``Tokenizer``; other runtimes do not have it.
    """
    model: TermFrequencyVectorizer = operator.raw_operator
    graph, shortest = Graph(scope, container), _shortest_word(model)
    texts = graph.add("Reshape", operator.inputs[0].full_name, graph.constant([-1]))
    if model.lowercase:
        options = operator.scope_inst.get_options(model, {"locale": LOCALE})
        given = {"case_change_action": "LOWER", "is_case_sensitive": 1, "locale": options["locale"]}
        texts = graph.add("StringNormalizer", texts, **given)
    words = graph.add(
        "Tokenizer",
        texts,
        domain="com.microsoft",
        tokenexp=rf"[\p{{L}}\p{{N}}_]{{{shortest},}}",
        pad_value=PADDING,
        mark=0,
        mincharnum=1,
    )
    counts = _counted(graph, model, _never_empty(graph, texts, words))
    # Counts are whole numbers, which single precision has exactly.
    _scaled(graph, graph.cast(counts), model, model._n_terms, operator.outputs[0].full_name)


def convert_scaler(scope: Any, operator: Any, container: Any) -> None:
    """The nodes of a :class:`maxdisc.words.CountScaler`."""
    model: CountScaler = operator.raw_operator
    graph, n_columns = Graph(scope, container), int(operator.raw_operator.n_features_in_)
    counts = graph.cast(operator.inputs[0].full_name)
    at_least = graph.add("GreaterOrEqual", counts, graph.constant(0.0))
    below = graph.add("Less", counts, graph.constant(np.inf))
    wrong = graph.any_of_row(graph.add("Not", graph.add("And", at_least, below)), n_columns)
    zero = graph.constant(np.zeros(1))
    none = graph.add("Gather", zero, graph.cast(wrong, TensorProto.INT64), axis=0, called=GUARD)
    _scaled(graph, graph.add("Add", counts, none), model, n_columns, operator.outputs[0].full_name)


def _shortest_word(model: TermFrequencyVectorizer) -> int:
    """Length of the shortest word; ``ValueError`` for words, or terms, that no operator finds."""
    rule = model._checked_rule()
    if rule.shortest is None:
        raise ValueError(
            f"token_pattern={model.token_pattern!r} cannot be exported to ONNX: only runs of letters and "
            r"digits such as the default '(?u)\b\w\w+\b' can."
        )
    if rule.stop_words and rule.ngram_range[1] > 1:
        raise ValueError(
            "stop_words cannot be exported to ONNX together with ngram_range="
            f"{model.ngram_range!r}: no operator leaves words out of a row of words."
        )
    stopped = sorted(rule.stop_words.intersection(model.terms_.tolist()))
    if stopped:
        raise ValueError(
            f"the vocabulary has {stopped[0]!r}, which is a stop word, too: ONNX would count it, so leave it "
            "out of one of the two."
        )
    return rule.shortest


def _never_empty(graph: Graph, texts: str, words: str) -> str:
    """Words of documents, with one more place: a batch in which no document has a word has a width, too."""
    shape = graph.add("Concat", graph.add("Shape", texts), graph.constant([1]), axis=0)
    padding = graph.add("Expand", graph.constant(np.array([PADDING], dtype=object)), shape)
    return graph.add("Concat", words, padding, axis=1)


def _counted(graph: Graph, model: TermFrequencyVectorizer, words: str) -> str:
    """Return how often each term stands in a row of words, shape (n, D)."""
    by_length: dict[int, list[tuple[int, list[str]]]] = {}
    for term, column in model.vocabulary_.items():
        parts = term.split(" ")
        by_length.setdefault(len(parts), []).append((column, parts))
    low, high = model.ngram_range
    pool: list[str] = []
    starts, columns = [], []
    for length in range(1, high + 1):
        starts.append(len(pool))
        # Terms of other lengths, as a given vocabulary may have, are never found.
        for column, parts in by_length.get(length, []) if length >= low else []:
            columns.append(column)
            pool += parts
    if not columns:
        raise ValueError(
            "no term of the vocabulary has as many words as ngram_range says: none can be found."
        )
    return _in_place(
        graph,
        graph.add(
            "TfIdfVectorizer",
            words,
            mode="TF",
            min_gram_length=low,
            max_gram_length=high,
            max_skip_count=0,
            ngram_counts=starts,
            ngram_indexes=list(range(len(columns))),
            pool_strings=pool,
        ),
        np.array(columns),
        model._n_terms,
    )


def _in_place(graph: Graph, counts: str, columns: Any, n_terms: int) -> str:
    """Counts of some terms where the columns of all of them are."""
    if np.array_equal(columns, np.arange(n_terms)):
        return counts
    place = np.full(n_terms, len(columns))
    place[columns] = np.arange(len(columns))
    if len(columns) < n_terms:  # the one after the last is of no term, and 0
        pads = graph.constant([0, 0, 0, 1])
        counts = graph.add("Pad", counts, pads)
    return graph.columns(counts, place)


def _scaled(
    graph: Graph, counts: str, model: TermFrequencyVectorizer | CountScaler, width: int, result: str
) -> None:
    """What :func:`maxdisc.words.scaling.scaled_counts` does."""
    if model.scale is None:
        graph.add("Identity", counts, result=result)
        return
    ones = np.ones((width, 1))
    if model.scale == "log":
        counts = graph.log1p(counts)
        length = graph.add("Sqrt", graph.product(graph.add("Mul", counts, counts), ones))
    else:
        length = graph.product(counts, ones)
    some = graph.add("Greater", length, graph.constant(0.0))
    length = graph.add("Where", some, length, graph.constant(1.0))
    target = 1.0 if model.scale == "frequency" else model.mean_length_
    graph.add("Mul", counts, graph.add("Div", graph.constant(target), length), result=result)
