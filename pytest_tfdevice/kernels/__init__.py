"""Which kernels exist for which device: the live registry of a TensorFlow, or a shipped table."""
