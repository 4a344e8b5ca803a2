"""Spares a task the imports that its executor doesn't need: they would take longer than TensorFlow's own.

Importing any executor of TFX imports its parent package `tfx.components` first, whose `__init__` imports every component with all that
belongs to it (Google Cloud's client libraries); the specifications of TFX's components import TFDV and TFMA for a message of each; and
importing a message of KFP imports KFP's SDK. Beam imports the clients of BigQuery, with them IPython for progress bars in a notebook,
and of Pub/Sub. TFDV and TFMA import IPython for their views, TFMA all of SciPy's distributions for one of them, and NLTK for one metric.
tfmot imports Keras 3 to look for a module that only Keras 2 has. TensorFlow imports Google's API client, in case it runs on Compute
Engine.
"""

import importlib
import importlib.util
import os
import sys
import threading
import types
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

# Run when they are asked for anything, a submodule too unless it is here itself.
_LATER = {
    "google.cloud.bigquery",
    "google.cloud.bigquery_storage_v1",
    "google.cloud.pubsub",
    "googleapiclient.discovery",
    "nltk",
    "nltk.stem",
    "nltk.stem.porter",
    "scipy.stats",
}
# Packages whose submodules stand for themselves: run when they are asked for anything else.
_OPEN = {
    "IPython",
    "keras",
    "tensorflow_data_validation",
    "tensorflow_model_analysis",
    "tensorflow_model_analysis.sdk",
    "tensorflow_model_analysis.view",
    "tfx.components",
}
# Names that a module takes from another one: asked for these, it needn't run.
_ELSEWHERE = {("tensorflow_model_analysis.sdk", "EvalConfig"): "tensorflow_model_analysis.proto.config_pb2"}
# The import system asks any module for names with underscores; who asks for these wants what is in the module.
_CONTENT = ("__all__", "__version__")


def lighten() -> None:
    """To be called before anything of TFX or KFP is imported; what was imported already stays."""
    os.environ.setdefault("_KFP_RUNTIME", "true")  # KFP's own switch for containers: messages without the SDK
    if not any(isinstance(finder, _LaterFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _LaterFinder())


class _LaterFinder(MetaPathFinder):
    """Finds the modules that are to run later."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None) -> ModuleSpec | None:
        package = sys.modules.get(fullname.rpartition(".")[0])
        if isinstance(package, _LaterModule) and package.__name__ in _LATER and fullname not in _LATER:
            _run(package)
            if fullname in sys.modules:  # the package has imported it
                return ModuleSpec(fullname, _ThereLoader(sys.modules.pop(fullname)))
        spec = PathFinder.find_spec(fullname, path, target) if fullname in _LATER | _OPEN else None
        if spec is not None and spec.loader is not None:
            spec.loader = _LaterLoader(spec.loader)
        return spec


class _LaterLoader(Loader):
    """Runs a module when it is asked to.

    The standard library's LazyLoader runs a package as soon as one of its submodules is imported.
    """

    def __init__(self, own: Loader) -> None:
        self._own = own
        self._lock, self._runs = threading.RLock(), False  # Beam's workers are threads

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)  # such as get_data, by which a package's files are read

    def create_module(self, spec: ModuleSpec) -> types.ModuleType | None:
        return self._own.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__class__ = _LaterModule

    def run(self, module: types.ModuleType) -> None:
        """Runs the module once. What it imports may ask it for names meanwhile; other threads wait."""
        with self._lock:
            package = module.__name__.rpartition(".")[0]
            if package in _LATER and not self._runs:
                _run(sys.modules[package])  # which may ask for this module
            if self._runs:
                return
            self._runs = True
            try:
                self._own.exec_module(module)
            except BaseException:
                self._runs = False
                raise
            module.__loader__ = self._own
            if module.__spec__ is not None:
                module.__spec__.loader = self._own
            module.__class__ = types.ModuleType  # an ordinary one from now on


class _ThereLoader(Loader):
    """Gives the module that is there: the import system looked for it before its package ran."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec


class _LaterModule(types.ModuleType):
    """A module that hasn't run."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in _CONTENT:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        if (self.__name__, name) in _ELSEWHERE:
            value = getattr(importlib.import_module(_ELSEWHERE[self.__name__, name]), name)
            setattr(self, name, value)  # TFX adds to a newer TFMA the names that it lacks: this one must stay
            return value
        # `from package import submodule` asks for the name before it imports the submodule. Running the package then, in the middle
        # of one of its own modules, would be a circular import.
        below = f"{self.__name__}.{name}"
        if below in _LATER or (self.__name__ in _OPEN and not name.startswith("__") and importlib.util.find_spec(below) is not None):
            return importlib.import_module(below)
        _run(self)
        return types.ModuleType.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        _run(self)
        return list(types.ModuleType.__dir__(self))


def _run(module: types.ModuleType) -> None:
    loader = module.__spec__.loader if module.__spec__ is not None else None
    if isinstance(loader, _LaterLoader):
        loader.run(module)
