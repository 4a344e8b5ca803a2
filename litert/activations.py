"""The tensors of a float flatbuffer that its inputs decide: those that quantization needs ranges of."""

from ai_edge_litert import schema_py_generated as schema

from tfx_edge.litert import inspect
from tfx_edge.schemas import EdgeError


def activations(model: bytes) -> dict[str, int]:
    """The float32 tensors of a model that depend on its inputs: those inputs and every operator's outputs, as index by name.

    Raises:
        EdgeError: not a flatbuffer, or two of the tensors have one name, so that no range can be told theirs.
    """
    graph = inspect.parse(model).subgraphs[0]
    found: dict[str, int] = {}
    for index in [*graph.inputs, *(index for op in graph.operators or () for index in op.outputs)]:
        tensor = graph.tensors[index]
        name = tensor.name.decode()
        if tensor.type != schema.TensorType.FLOAT32:
            continue
        if found.setdefault(name, int(index)) != int(index):
            raise EdgeError(f"the float flatbuffer has two tensors named {name!r}: their ranges can't be told apart; rename the layers")
    return found
