"""What must hold before a test module imports TensorFlow."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # its start-up notices would bury a failure

import tfx_edge  # noqa: F401 - chooses Keras 2
