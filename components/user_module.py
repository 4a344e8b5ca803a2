"""Functions of the user's that replace a part of a training.

A module given as `module_path` may define any of these, and must define one:

    def dataset_fn(dataset: tf.data.Dataset) -> tf.data.Dataset    # in place of the examples as read: (features, label), one at a time
    def loss_fn() -> tf_keras.losses.Loss                          # in place of the loss that the model was compiled with
    def student_fn(teacher: tf_keras.Model) -> tf_keras.Model      # Distiller: the student, in place of a scaled teacher
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tfx_edge.schemas import EdgeError


@dataclass(frozen=True)
class UserModule:
    """The functions that a module defines; None where it leaves one out."""

    dataset_fn: Callable[..., Any] | None = None
    loss_fn: Callable[..., Any] | None = None
    student_fn: Callable[..., Any] | None = None


def load_user_module(path: str | None) -> UserModule:
    """Imports a user's module; None gives one without functions.

    Raises:
        EdgeError: it can't be imported, or defines none of the functions.
    """
    if path is None:
        return UserModule()
    try:
        module = importlib.import_module(path)
    except (ImportError, SyntaxError, ValueError) as error:
        raise EdgeError(f"module_path {path!r}: {error}; expected the import path of a module, such as package.module") from error
    names = tuple(UserModule.__dataclass_fields__)
    functions = {name: getattr(module, name) for name in names if callable(getattr(module, name, None))}
    if not functions:
        raise EdgeError(f"module_path {path!r}: the module defines none of {', '.join(names)}; define one, or leave module_path out")
    return UserModule(**functions)
