"""
Custom families
===============

Any feature functions and any range of values define a family of maximum-entropy densities. There are two ways to define one: give the functions, and
let the convex dual compute the densities; or implement the closed form, if there is one.

Hours of the day
----------------

Hours are circular: 23:30 and 0:30 are close. Two kinds of people call late or early. A Gaussian density of the hour cannot represent that late callers may call before or after
midnight.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxdisc import MaxDiscClassifier
from maxdisc.families import NumericFamily, Support
from maxdisc.families.functions import Cosine, Sine
from maxdisc.plots import DensityDisplay

rng = np.random.default_rng(0)
late = np.arange(600) % 2 == 0
hours = (rng.normal(np.where(late, 23.0, 5.0), 2.5) % 24.0)[:, None]
kind = np.where(late, "late", "early")

circular = NumericFamily(Support(0.0, 24.0), (Cosine(1, 24.0), Sine(1, 24.0)))
_, places = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained", sharey=True)
for place, family in zip(places, ("gaussian", circular), strict=True):
    model = MaxDiscClassifier(family).fit(hours[:300], kind[:300])
    DensityDisplay.from_estimator(model, 0, ax=place)
    for label in model.classes_:
        place.hist(hours[:300][kind[:300] == label, 0], np.arange(25), density=True, color="gray", alpha=0.3)
    name = "Gaussian" if family == "gaussian" else "cosine and sine"
    place.set(
        title=f"{name}: accuracy {model.score(hours[300:], kind[300:]):.2f}",
        xlabel="hour",
        xlim=(-6, 30),
        ylim=(0, 0.2),
    )

# %%
# A closed form
# -------------
#
# The length of a vector of noise has Rayleigh's density, :math:`x \exp(-x^2 / 2 s^2) / s^2`: a family with the statistic :math:`x^2` and the base measure
# :math:`x`. A family defines the conversion between natural and mean parameters, and the log-partition, whose gradient is the mean.

from maxdisc.families import Family
from maxdisc.testing import check_family, check_moments


class Rayleigh(Family):
    """Maximum entropy on the half-line under a mean of squares, with the base measure x."""

    name = "rayleigh"
    support = Support(0.0, open_low=True)
    n_statistics = 1
    neutral = (2.0,)
    preserves_zero = False

    def statistics(self, X):
        return (X**2,)

    def natural(self, mean):
        return -1.0 / np.maximum(mean, 1e-300)

    def mean(self, natural):
        return -1.0 / natural

    def log_partition(self, natural):
        return -np.log(-2.0 * natural[0])

    def log_base(self, x):
        return np.log(x)

    def sample(self, natural, rng):
        return np.sqrt(rng.exponential(-1.0 / natural[0]))

    def interior(self, mean):
        return mean[0] > 0

    def point(self, mean):
        return np.sqrt(mean[0])

    def entropy(self, natural):
        # -E log x is what the base measure adds.
        return super().entropy(natural) - 0.5 * (np.log(-1.0 / natural[0]) - np.euler_gamma)


# %%
# The checks for families are public. They integrate, differentiate, draw samples, and raise an error if a property does not hold:

check_family(Rayleigh())
check_moments(Rayleigh())

# %%
# The family then works like the built-in ones: for ranking, selection and explanations, in batches and on engines.

noise = rng.normal(size=(600, 40, 2)) * np.where(late[:, None] & (np.arange(40) < 5), 1.5, 1.0)[:, :, None]
lengths = np.linalg.norm(noise, axis=2)
model = MaxDiscClassifier(Rayleigh()).fit(lengths[:300], kind[:300])
print(
    f"selected {sorted(model.ranking_[: model.n_selected_].tolist())[:8]}, accuracy {model.score(lengths[300:], kind[300:]):.2f}"
)
