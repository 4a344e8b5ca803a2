"""Trials in a folder: `<search>/<trial>/trial.json`, and beside it the model and plan of a trial that was the best so far."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass

from tfx.dsl.io import fileio
from tfx.utils import io_utils

from tfx_edge.components.documents import read_bytes, write_document
from tfx_edge.schemas import SearchConfig, TrialResult
from tfx_edge.schemas.search import Value

_TRIAL, _KEPT = "trial.json", "kept"
# What may change without making a trial another one.
_FREE = {"space", "optional", "algorithm", "max_trials", "time_limit_s", "trials_dir"}


@dataclass(frozen=True)
class TrialStore:
    """The trials of one model, on data of one kind, with one config.

    Attributes:
        folder: this search's own, on any filesystem that TFX reaches.
    """

    folder: str

    def read(self, values: Mapping[str, Value]) -> TrialResult | None:
        """The whole trial of these values, if there was one."""
        path = f"{self._trial(values)}/{_TRIAL}"
        return TrialResult.from_json(read_bytes(path)) if fileio.exists(path) else None

    def write(self, result: TrialResult) -> None:
        """Writes a trial's result, which makes it whole: after `keep`."""
        write_document(f"{self._trial(result.values)}/{_TRIAL}", result)

    def keep(self, values: Mapping[str, Value], local_folder: str) -> None:
        """Copies what a trial made."""
        part = f"{self._trial(values)}/{_KEPT}.part"
        io_utils.copy_dir(local_folder, part)
        self.drop(values)
        fileio.rename(part, f"{self._trial(values)}/{_KEPT}")

    def kept(self, values: Mapping[str, Value]) -> str | None:
        """The folder that `keep` copied to, if it is there."""
        path = f"{self._trial(values)}/{_KEPT}"
        return path if fileio.exists(path) else None

    def drop(self, values: Mapping[str, Value]) -> None:
        """Deletes what `keep` copied."""
        path = self.kept(values)
        if path is not None:
            fileio.rmtree(path)

    def _trial(self, values: Mapping[str, Value]) -> str:
        return f"{self.folder}/trial-{_digest(values)}"


def open_store(root: str, config: SearchConfig, reference: TrialResult, digests: Mapping[str, str | None]) -> TrialStore:
    """The store of a search, in a folder named by all that a trial's result depends on: another model or config gets another.

    Args:
        root: folder for all searches.
        config: what is searched; a trial doesn't depend on how many there are, or on what proposes them.
        reference: the float model's measurements, which tell other data.
        digests: of the other inputs.
    """
    owner = {
        "config": config.model_dump(mode="json", exclude=_FREE),
        "reference": reference.model_dump(mode="json", exclude={"seconds", "latency_ratio"}),
        "inputs": dict(digests),
    }
    return TrialStore(f"{root}/search-{_digest(owner)}")


def _digest(content: Mapping[str, object]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]
