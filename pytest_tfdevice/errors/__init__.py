"""What TensorFlow says when it raises: an op that it could not place, memory that ran out.

``placement`` reads the messages of the placer into the parts in ``failure``, ``reasons`` says why
it could not; ``out_of_memory`` reads a ``ResourceExhaustedError``.
"""
