"""Measurements: not part of the package."""
