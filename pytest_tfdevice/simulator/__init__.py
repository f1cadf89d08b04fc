"""The simulated GPU: a real TensorFlow device of type GPU on host memory."""
