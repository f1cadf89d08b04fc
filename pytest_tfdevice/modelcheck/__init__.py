"""A saved model → where its operations would run, without running it.

Each signature is handed to TensorFlow's placer in the dead branch of a small graph
(``dead_branch``): what comes back is what the placer decided for every op,
gradients and nested functions inlined, and no op of the model has run.  That needs no inputs at
all, so that unknown dimensions, strings and images that would have to be real ones don't matter,
and a model of any size costs its loading and one placement.  What is lost is what happens after
placement: an optimiser that would move a small op to the host is not seen.

Only a model that has no graph to place, because TensorFlow can't trace it, is run, on inputs made
from its signature (``running``).
"""

from pytest_tfdevice.modelcheck.check import ModelCheck, SignatureCheck, check_model
from pytest_tfdevice.modelcheck.kinds import ModelError

__all__ = ["ModelCheck", "ModelError", "SignatureCheck", "check_model"]
