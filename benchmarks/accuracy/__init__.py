"""Are verdicts and reasons right?  Programs with a known answer, on the simulated GPU.

Run with ``python -m benchmarks.accuracy`` (``--help`` tells the options) from the project's root.
"""
