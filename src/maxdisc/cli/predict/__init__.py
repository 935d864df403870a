"""``predict``: labels for new rows, and decisions that follow from their probabilities."""
