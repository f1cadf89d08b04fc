"""Baselines of ten models of ``keras.applications``, byte for byte."""
