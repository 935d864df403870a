"""
Text in ten lines
=================

Documents in, labels out, and for every answer the words that gave it. The documents are the docstrings of the Python packages that are installed
anyway: which package is each of them from?
"""

from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from maxdisc import MaxDiscClassifier, TermFrequencyVectorizer
from maxdisc.datasets import load_docstrings

documents = load_docstrings("package")
texts, new_texts, labels, new_labels = train_test_split(documents.data, documents.target, random_state=0)
model = make_pipeline(TermFrequencyVectorizer(min_df=3), MaxDiscClassifier())
model.fit(texts, labels)
print(
    f"accuracy on {len(new_texts):,} documents that were not seen: {model.score(new_texts, new_labels):.3f}"
)

# %%
# Words are counted and scaled to a common length, their counts have Poisson densities, words are ranked by how far these differ between the classes,
# and how many of them to keep was chosen on five folds while fitting.

classifier = model[-1]
print(f"{classifier.n_selected_:,} of {classifier.n_features_in_:,} words kept")
print(model.predict(["the Hessian of a sparse matrix", "a socket that listens for connections"]))

# %%
# What was learnt can be read. These are the words by which the packages differ most:

from maxdisc.plots import EvidenceDisplay, RankingDisplay

RankingDisplay.from_estimator(model, n_features=12)

# %%
# And an answer is a sum: the log-odds of the best class against the next one, taken apart word by word. The sum is exact.

EvidenceDisplay.from_estimator(
    model, "Fit the estimator to an array of samples and return the estimator", n_features=6
)
