"""Weighted sums of feature functions: all that a fit learns."""
