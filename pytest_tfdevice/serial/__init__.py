"""Versioned JSON: records, verdicts, reports of runs, and what is common to every such file.

Everything here knows neither TensorFlow nor pytest.
"""
