"""Calibrated probabilities, refined evidence and novelty."""
