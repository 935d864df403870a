"""How far a ranking can be trusted: what scores are worth by luck alone, p-values and false discoveries."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from maxdisc.matrices import Floats


def debiased(
    scores: npt.ArrayLike, n_statistics: npt.ArrayLike, n_classes: npt.ArrayLike, n_rows: npt.ArrayLike
) -> Floats:
    """Divergences less what luck alone gives: ``max(0, JS_GM - L (C - 1) / n)``.

    If classes do not differ, n times the js_gm of unsmoothed moments is, for many rows, chi-square with
    L (C - 1) degrees of freedom. So its mean is L (C - 1) / n: more for features with more statistics or
    with fewer rows in which they are observed, which are therefore not comparable as they are.

    Parameters
    ----------
    scores : array_like of shape (D,)
        js_gm, in nats, of the rows in which a feature is observed. The scores of a model are these times the
        share of such rows; what luck gives to *them* is L (C - 1) / N, so ``n_rows`` is then N for all.
    n_statistics : int or array_like of shape (D,)
        L, of the family of each feature.
    n_classes : int or array_like of shape (D,)
        C; classes without rows do not count.
    n_rows : float or array_like of shape (D,)
        n, the rows in which each feature is observed.

    Returns
    -------
    ndarray of shape (D,)
        0 where no row was observed.

    Examples
    --------
    >>> from maxdisc.significance import debiased
    >>> debiased([0.5, 0.5, 0.01], n_statistics=[1, 2, 2], n_classes=3, n_rows=[100, 100, 50])
    array([0.48, 0.46, 0.  ])
    """
    score, n = np.asarray(scores, dtype=np.float64), np.asarray(n_rows, dtype=np.float64)
    freedom = np.asarray(n_statistics) * np.maximum(np.asarray(n_classes) - 1, 0)
    bias = np.divide(
        freedom, n, out=np.full(np.broadcast_shapes(freedom.shape, n.shape), np.inf), where=n > 0
    )
    return np.maximum(score - bias, 0.0)
