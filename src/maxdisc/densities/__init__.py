"""From moments to one density for each class and feature."""
