"""Read-only views of fitted models."""
