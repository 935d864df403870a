"""Read-only views of fitted models for reports, plots, the service and the command line."""
