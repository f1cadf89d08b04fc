"""Verdicts and records → text, for people and for machines."""
