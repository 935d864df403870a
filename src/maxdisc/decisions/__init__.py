"""Bayes' rule: class scores, and what each feature adds."""
