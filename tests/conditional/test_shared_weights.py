"""A few weights and a bias for each class: the optimum, whatever the features are like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from maxdisc.conditional import shared_weights as module
from maxdisc.conditional.model import ClassFeatures, Examples, Prior, fit, log_posterior
from maxdisc.conditional.shared_weights import doubt, shared_weights, shared_weights_of_all
from maxdisc.testing import batches_of

RIDGE, BIAS_RIDGE = 1.0, 0.1


def evidence(n=300, n_classes=4, n_bands=3, scale=2.0, seed=0):
    """Bands of which the first is told by the class, the second less so, and the others against it."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(n_classes, size=n)
    tensor = rng.normal(size=(n, n_classes, n_bands))
    tensor[np.arange(n), codes] += np.array([1.0, 0.3, -0.4, *[0.0] * n_bands])[:n_bands]
    return scale * tensor, codes


def objective(tensor, codes, weight, center, doubted=0.0):
    """Minus log-likelihood plus the ridge and its gradient, written down again."""
    n_bands = tensor.shape[2]
    own = np.eye(len(center), dtype=bool)[codes]

    def evaluated(point):
        log_p = log_posterior(tensor @ point[:n_bands] + point[n_bands:])
        p = np.exp(log_p)
        wrong = np.logaddexp.reduce(np.where(own, -np.inf, log_p), axis=1)
        rival = np.where(own, 0.0, np.exp(log_p - wrong[:, None]))
        surplus = weight[:, None] * (p - (1 - doubted) * own - doubted * rival)
        away = point - np.r_[np.ones(n_bands), center]
        precision = np.r_[np.full(n_bands, RIDGE), np.full(len(center), BIAS_RIDGE)]
        value = -weight @ ((1 - doubted) * log_p[own] + doubted * wrong) + 0.5 * precision @ away**2
        slope = np.r_[np.einsum("nc,ncg->g", surplus, tensor), surplus.sum(axis=0)]
        return value, slope + precision * away

    return evaluated


def solved(tensor, codes, weight, center, doubted=0.0):
    n_bands, n_classes = tensor.shape[2], tensor.shape[1]
    bounds = [(0, None)] * n_bands + [(None, None)] * n_classes
    first = np.r_[np.ones(n_bands), center]
    given = objective(tensor, codes, weight, center, doubted)
    found = minimize(
        given, first, jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    )
    return found.x[:n_bands], found.x[n_bands:], found.fun


@given(
    st.integers(2, 6),
    st.integers(1, 5),
    st.sampled_from([0.05, 1.0, 8.0]),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([0.0, 0.01, 0.3]),
)
def test_the_optimum_is_that_of_two_other_solvers(n_classes, n_bands, scale, seed, weighty, doubted):
    tensor, codes = evidence(120, n_classes, n_bands, scale, seed)
    rng = np.random.default_rng(seed + 1)
    weight = rng.random(120) + 0.1 if weighty else np.ones(120)
    center = rng.normal(size=n_classes)
    found = shared_weights(tensor, codes, weight, center, tol=1e-10, doubt=doubted)
    assert found.converged
    value = objective(tensor, codes, weight, center, doubted)
    at = np.r_[found.weights, found.bias]
    weights, bias, least = solved(tensor, codes, weight, center, doubted)
    assert value(at)[0] <= least + 1e-8 * (1 + abs(least))
    if doubted:
        return
    np.testing.assert_allclose(found.weights, weights, atol=1e-4)
    np.testing.assert_allclose(found.bias, bias, atol=1e-3)
    other = fit(
        Examples(ClassFeatures(tensor), codes, weight),
        Prior(RIDGE, 1.0, BIAS_RIDGE, center),
        lower=0.0,
        tol=1e-9,
    )
    np.testing.assert_allclose(found.weights, other.weights, atol=1e-4)


def test_the_gradient_vanishes_where_weights_are_free_and_points_out_where_they_are_not():
    tensor, codes = evidence(seed=3)
    found = shared_weights(tensor, codes, np.ones(len(codes)), np.zeros(4), tol=1e-10)
    _, slope = objective(tensor, codes, np.ones(len(codes)), np.zeros(4))(np.r_[found.weights, found.bias])
    assert found.weights[2] == 0  # that band speaks against the class
    assert slope[2] > 0
    free = np.delete(slope, 2)
    assert np.abs(free).max() < 1e-6 * len(codes)


def test_the_loss_is_that_of_the_rows():
    tensor, codes = evidence()
    weight = np.random.default_rng(0).random(len(codes))
    found = shared_weights(tensor, codes, weight, np.zeros(4))
    log_p = found.log_posterior(tensor)[np.arange(len(codes)), codes]
    assert found.loss == pytest.approx(-weight @ log_p / weight.sum())


@pytest.mark.parametrize("scale", [1e-200, 1e-6, 1e6, 1e12])
def test_evidence_of_any_size(scale):
    """What is hardly told stays at the centre of the ridge, and what is far too sure is brought down."""
    tensor, codes = evidence(400, 3, 2, scale)
    found = shared_weights(tensor, codes, np.ones(400), np.log(np.full(3, 1 / 3)))
    assert found.converged
    assert np.isfinite(found.loss)
    assert found.loss <= np.log(3) + 1e-6
    if scale < 1:
        np.testing.assert_allclose(found.weights, 1.0, atol=1e-3)
    else:
        unit = shared_weights(tensor / scale, codes, np.ones(400), np.log(np.full(3, 1 / 3)), ridge=1e-9)
        np.testing.assert_allclose(found.weights * scale, unit.weights, rtol=1e-3)


@pytest.mark.parametrize("factor", [1e-200, 1e-9, 1e9, 1e150])
def test_weights_of_rows_of_any_size(factor):
    tensor, codes = evidence(200, 3, 2)
    found = shared_weights(tensor, codes, np.full(200, factor), np.zeros(3))
    assert found.converged
    assert np.isfinite(found.weights).all()
    if factor < 1:
        # Rows that weigh nothing say nothing.
        np.testing.assert_allclose(found.weights, 1.0, atol=1e-3)
    else:
        free = shared_weights(tensor, codes, np.ones(200), np.zeros(3), ridge=0.0, bias_ridge=0.0)
        np.testing.assert_allclose(found.weights, free.weights, rtol=1e-3, atol=1e-6)


def test_a_row_of_weight_two_is_two_rows():
    tensor, codes = evidence(60, 3, 2)
    twice = np.repeat(np.arange(60), 2)
    once = shared_weights(tensor, codes, np.full(60, 2.0), np.zeros(3), tol=1e-10)
    both = shared_weights(tensor[twice], codes[twice], np.ones(120), np.zeros(3), tol=1e-10)
    np.testing.assert_allclose(once.weights, both.weights, rtol=1e-7)
    np.testing.assert_allclose(once.bias, both.bias, atol=1e-7)


def test_what_all_classes_share_changes_nothing():
    tensor, codes = evidence(150, 3, 2)
    shared = 1e3 * np.random.default_rng(0).normal(size=(150, 1, 2))
    a = shared_weights(tensor, codes, np.ones(150), np.zeros(3), tol=1e-9)
    b = shared_weights(tensor + shared, codes, np.ones(150), np.zeros(3), tol=1e-9)
    np.testing.assert_allclose(a.weights, b.weights, rtol=1e-6)


def test_classes_that_evidence_tells_apart_for_sure():
    codes = np.arange(60) % 3
    tensor = np.zeros((60, 3, 1))
    tensor[np.arange(60), codes] = 1.0
    found = shared_weights(tensor, codes, np.ones(60), np.zeros(3))
    assert found.converged
    assert 1 < found.weights[0] < 20  # the ridge keeps it
    assert found.loss < 0.1
    for scale in (1e3, 1e6):
        sure = shared_weights(scale * tensor, codes, np.ones(60), np.zeros(3))
        assert sure.converged
        assert sure.loss < 1e-6


def test_sixty_classes():
    tensor, codes = evidence(2000, 60, 6, 1.0)
    found = shared_weights(tensor, codes, np.ones(2000), np.full(60, np.log(1 / 60)), tol=1e-8)
    assert found.converged
    weights, _, least = solved(tensor, codes, np.ones(2000), np.full(60, np.log(1 / 60)))
    value, _ = objective(tensor, codes, np.ones(2000), np.full(60, np.log(1 / 60)))(
        np.r_[found.weights, found.bias]
    )
    assert value <= least + 1e-6
    np.testing.assert_allclose(found.weights, weights, atol=1e-3)


def test_a_class_without_rows_is_never_called_for():
    tensor, codes = evidence(300, 4, 2)
    codes = np.minimum(codes, 2)
    found = shared_weights(tensor, codes, np.ones(300), np.r_[np.zeros(3), -700.0])
    assert found.converged
    assert np.exp(found.log_posterior(tensor))[:, 3].max() < 0.05


def test_bands_that_say_nothing_keep_the_weight_of_the_ridge():
    tensor, codes = evidence(100, 3, 2)
    tensor[:, :, 1] = 0.0
    found = shared_weights(tensor, codes, np.ones(100), np.zeros(3))
    assert found.converged
    assert found.weights[1] == pytest.approx(1.0)


def test_where_it_starts_does_not_matter():
    tensor, codes = evidence(200, 3, 4)
    few = shared_weights(tensor[:, :, :2], codes, np.ones(200), np.zeros(3))
    again = shared_weights(tensor, codes, np.ones(200), np.zeros(3), start=few, tol=1e-10)
    fresh = shared_weights(tensor, codes, np.ones(200), np.zeros(3), tol=1e-10)
    np.testing.assert_allclose(again.weights, fresh.weights, atol=1e-8)
    np.testing.assert_allclose(again.bias, fresh.bias, atol=1e-8)


@pytest.mark.parametrize("n", [20, 200, 2000])
def test_rows_without_an_error_are_as_sure_as_laplace_would_be(n):
    """Scores that all point the right way, by the same margin: the best scale says 1 / (n + 2), no less."""
    codes = np.arange(n) % 2
    tensor = np.where(np.eye(2, dtype=bool)[codes], 50.0, -50.0)[:, :, None]
    given = (tensor, codes, np.ones(n), np.zeros(2))
    found = shared_weights(*given, ridge=1e-9, doubt=doubt(n))
    wrong = np.exp(found.log_posterior(tensor))[np.arange(n), 1 - codes]
    np.testing.assert_allclose(wrong, doubt(n), rtol=1e-3)
    assert np.exp(shared_weights(*given).log_posterior(tensor)).min() < 1e-40  # what nobody can know


def test_even_margins_beat_uneven_ones_where_no_row_is_wrong():
    """Without doubt the larger scores win, whatever they are worth."""
    rng = np.random.default_rng(0)
    n = 100
    codes = np.arange(n) % 2
    sign = np.where(np.eye(2, dtype=bool)[codes], 1.0, -1.0)
    even = 2 * sign * rng.uniform(0.8, 1.2, size=(n, 1))
    uneven = 3000 * sign * rng.lognormal(-2, 1.5, size=(n, 1))
    losses = {
        (name, doubted): shared_weights(
            scores[:, :, None], codes, np.ones(n), np.zeros(2), doubt=doubted
        ).loss
        for name, scores in {"even": even, "uneven": uneven}.items()
        for doubted in (0.0, doubt(n))
    }
    assert losses["uneven", 0.0] < losses["even", 0.0]
    assert losses["even", doubt(n)] < losses["uneven", doubt(n)]


def test_classes_out_of_the_question_do_not_count():
    """Two classes a few nats apart beside one that no row could be taken for: it changes nothing."""
    rng = np.random.default_rng(0)
    n = 300
    codes = np.arange(n) % 2
    score = np.where(codes == 1, 4.0, -4.0) + 2 * rng.normal(size=n)
    near = np.stack([-score, score], axis=1)
    far = np.column_stack([near, np.full(n, -1e5)])
    two = shared_weights(near[:, :, None], codes, np.ones(n), np.zeros(2), doubt=doubt(n))
    three = shared_weights(far[:, :, None], codes, np.ones(n), np.zeros(3), doubt=doubt(n))
    np.testing.assert_allclose(three.weights, two.weights, rtol=1e-6)
    assert two.weights[0] > 0.1


@given(st.integers(2, 5), st.integers(1, 4), st.integers(1, 5), st.booleans(), st.integers(0, 10**6))
def test_problems_solved_together_are_those_solved_alone(n_classes, n_bands, count, doubted, seed):
    rng = np.random.default_rng(seed)
    scales = rng.choice([0.01, 1.0, 30.0], size=count)
    tensors = np.stack([evidence(60, n_classes, n_bands, scale, seed)[0] for scale in scales])
    _, codes = evidence(60, n_classes, n_bands, seed=seed)
    weights = rng.choice([0.0, 1.0, 2.5], size=(count, 60)) + 1e-3
    # Rows without weight are as if they were not there.
    weights[:, rng.random(60) < 0.2] = 0.0
    sizes = rng.integers(1, n_bands + 1, size=count)
    center, doubts = np.zeros(n_classes), doubt(weights.sum(axis=1)) if doubted else np.zeros(count)
    together = shared_weights_of_all(tensors, codes, weights, center, sizes, doubts=doubts)
    for found, tensor, weight, size, d in zip(together, tensors, weights, sizes, doubts, strict=True):
        some = weight > 0
        alone = shared_weights(tensor[some][:, :, :size], codes[some], weight[some], center, doubt=float(d))
        assert found.weights.shape == (size,)
        assert found.loss == pytest.approx(alone.loss, rel=1e-9, abs=1e-12)
        np.testing.assert_allclose(found.weights, alone.weights, rtol=1e-5, atol=1e-7)
        np.testing.assert_allclose(found.bias, alone.bias, rtol=1e-5, atol=1e-6)


@given(
    st.integers(2, 6),
    st.integers(1, 5),
    st.sampled_from([0.05, 1.0, 8.0]),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([0.0, 0.01, 0.3]),
    st.sampled_from([1, 7, 10**6]),
)
def test_many_classes_have_the_same_optimum(n_classes, n_bands, scale, seed, weighty, doubted, batch):
    tensor, codes = evidence(90, n_classes, n_bands, scale, seed)
    rng = np.random.default_rng(seed + 1)
    weight = rng.choice([0.0, 0.3, 2.0], size=90) + 1e-3 if weighty else np.ones(90)
    given = (tensor, codes, weight, rng.normal(size=n_classes))
    few = shared_weights(*given, tol=1e-8, doubt=doubted)
    with pytest.MonkeyPatch.context() as patch, batches_of(batch):
        patch.setattr(module, "MANY_CLASSES", 1)
        many = shared_weights(*given, doubt=doubted)
    assert many.converged
    np.testing.assert_allclose(many.loss, few.loss, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(many.weights, few.weights, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(many.bias, few.bias, rtol=1e-2, atol=1e-2)


def test_three_hundred_classes():
    tensor, codes = evidence(900, 300, 3, 1.0)
    given = (tensor, codes, np.ones(900), np.full(300, -np.log(300)))
    found = shared_weights(*given, doubt=doubt(900))
    assert found.converged
    value, slope = objective(*given, doubt(900))(np.r_[found.weights, found.bias])
    free = np.r_[found.weights > 0, np.ones(300, dtype=bool)]
    assert np.abs(slope[free]).max() < 1e-2
    start = np.r_[np.ones(3), given[3]]
    assert value < objective(*given, doubt(900))(start)[0]
