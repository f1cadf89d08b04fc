"""Tests in a process of their own: ``gpu_memory(isolated=True)``.

The first initialisation fixes a GPU's memory limit for the life of a process, so that a test with a
limit of its own needs a fresh one.  ``parent`` runs the test as pytest runs any, by its node id, in
a child (``process``), whose ``child`` plugin ships pytest's own reports back over a socket
(``wire``).
"""
