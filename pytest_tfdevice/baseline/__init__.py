"""Baselines: where the operations of a test ran when somebody last looked, kept beside the tests.

*record → operations* (``observe``, with names from ``names``) *→ file* (``files``), and *operations
× operations → what changed* (``compare``).  Nothing here knows TensorFlow or pytest.
"""
