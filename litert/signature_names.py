"""The names by which apps find a signature's inputs and outputs."""

from collections.abc import Mapping

from tfx_edge.litert import inspect
from tfx_edge.litert.packing import pack


def rename_signature(model: bytes, signature: str, inputs: Mapping[str, str], outputs: Mapping[str, str]) -> bytes:
    """Gives a signature's inputs and outputs other names; nothing else changes.

    Args:
        model: a flatbuffer.
        signature: its name.
        inputs: new names by the old.
        outputs: new names by the old.

    Returns:
        The same bytes where no name is another.
    """
    if all(old == new for names in (inputs, outputs) for old, new in names.items()):
        return model
    parsed = inspect.parse(model)
    [found] = [s for s in parsed.signatureDefs if s.signatureKey.decode() == signature]
    for tensors, names in ((found.inputs, inputs), (found.outputs, outputs)):
        for tensor in tensors:
            tensor.name = names[tensor.name.decode()].encode()
    return pack(parsed)
