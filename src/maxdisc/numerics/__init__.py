"""Arrays, threads and compiled code."""
