"""
Text in ten lines
=================

Fit a classifier to documents, and see which words decide each prediction. The documents are the docstrings of
installed Python packages, and the label is the package.
"""

from sklearn.model_selection import train_test_split

from maxdisc import MaxDiscClassifier
from maxdisc.datasets import load_docstrings

documents = load_docstrings("package")
texts, new_texts, labels, new_labels = train_test_split(
    documents.data[::2], documents.target[::2], random_state=0
)
model = MaxDiscClassifier().fit(texts, labels)
print(f"accuracy on {len(new_texts):,} held-out documents: {model.score(new_texts, new_labels):.3f}")

# %%
# Words are counted and scaled to a common length. Their counts have Poisson densities. Words, and pairs of words if they help on held-out documents, are
# ranked by the divergence of the class densities, and their number is selected on five folds inside ``fit``.

print(f"{model.n_selected_:,} of {model.n_features_in_:,} words and pairs selected")
print(model.predict(["interpolate scattered points by a spline", "a socket that listens for connections"]))

# %%
# These words differ most between the packages:

from maxdisc.plots import EvidenceDisplay, RankingDisplay

RankingDisplay.from_estimator(model, n_features=12)

# %%
# A prediction is a sum: the log-odds of the best class versus the runner-up, by word. The sum is exact.

EvidenceDisplay.from_estimator(
    model, "Fit the estimator to an array of samples and return the estimator", n_features=6
)
