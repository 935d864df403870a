"""Engines that hold rows elsewhere; each needs an extra of its own and is imported by its own name."""
