"""Assert where TensorFlow ran."""
