"""Arrays, threads and compiled code: what every other room stands on."""
