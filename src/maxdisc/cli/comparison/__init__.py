"""``baselines`` and ``compare``: models side by side on the same rows."""
