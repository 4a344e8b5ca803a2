"""Components that a test puts between exporter and gate."""

import shutil
from pathlib import Path

import numpy as np
from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact
from tfx.dsl.component.experimental.decorators import component
from tfx.types.standard_artifacts import Model


@component
def ShuffleWeights(model: InputArtifact[Model], damaged: OutputArtifact[Model]) -> None:  # type: ignore[valid-type]
    """Copies an edge model with the elements of each of its weights in random order; it still loads and runs."""
    shutil.copytree(model.uri, damaged.uri, dirs_exist_ok=True)
    flatbuffer = Path(damaged.uri) / "Format-Serving" / "tflite"
    flatbuffer.write_bytes(shuffle_weights(flatbuffer.read_bytes()))


def shuffle_weights(flatbuffer: bytes, seed: int = 0) -> bytes:
    """Shuffles the int8 elements of every constant tensor of rank 2 and more, in place."""
    from ai_edge_litert import schema_py_generated as schema

    content = bytearray(flatbuffer)
    model = schema.Model.GetRootAs(content, 0)
    graph = model.Subgraphs(0)
    generator = np.random.default_rng(seed)
    shuffled = 0
    for i in range(graph.TensorsLength()):
        tensor = graph.Tensors(i)
        data = model.Buffers(tensor.Buffer()).DataAsNumpy()
        if tensor.Type() == schema.TensorType.INT8 and tensor.ShapeLength() > 1 and isinstance(data, np.ndarray):
            data.setflags(write=True)
            data[:] = generator.permutation(data)
            shuffled += 1
    assert shuffled, "no weights found to shuffle"
    return bytes(content)
