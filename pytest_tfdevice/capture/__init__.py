"""A running TensorFlow process → a Record.  Knows no pytest."""
