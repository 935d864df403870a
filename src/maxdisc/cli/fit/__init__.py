"""``fit``: from labelled rows to a model file, in memory, as a stream or on an engine."""
