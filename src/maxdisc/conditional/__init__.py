"""Conditional maximum entropy: class probabilities given features."""
