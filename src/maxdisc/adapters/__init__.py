"""Dask, Spark, ONNX and AnnData; each needs its extra."""
