"""Components that a test puts between exporter and gate."""

import shutil
from pathlib import Path

from gate_data import shuffled_weights
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model


@component
def ShuffleWeights(model: InputArtifact[Model], damaged: OutputArtifact[Model]) -> None:  # type: ignore[valid-type]
    """Copies an edge model with the elements of each of its weights in random order; it still loads and runs."""
    shutil.copytree(model.uri, damaged.uri, dirs_exist_ok=True)
    flatbuffer = Path(damaged.uri) / "Format-Serving" / "tflite"
    flatbuffer.write_bytes(shuffled_weights(flatbuffer.read_bytes()))
