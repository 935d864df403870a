"""P-values, false discovery rates and marker features."""
