"""The float flatbuffer of a float model, which plans are made for and applied to."""

import tempfile
from pathlib import Path

from tfx_edge.litert.convert import convert
from tfx_edge.optimize.float_model import FloatModel
from tfx_edge.schemas.schemes import IoType


def convert_model(float_model: FloatModel, name: str, quantized_io: IoType | None = None) -> bytes:
    """Converts a model. The same weights give the same bytes, in whichever component.

    Args:
        float_model: as `float_models.load` gives it.
        name: what to call the model in an error.
        quantized_io: for a model that emulates int8, see `convert`; None gives the float flatbuffer.

    Raises:
        EdgeError: the model can't be converted.
    """
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:  # local, as the converter reads no other
        saved_model = str(Path(scratch, "saved_model"))
        float_model.save(saved_model)
        return convert(saved_model, name=name, quantized_io=quantized_io)
