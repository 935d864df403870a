"""Number of features, by cross-validation."""
