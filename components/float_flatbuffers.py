"""The float flatbuffer of a float model, which plans are made for and applied to."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from tfx_edge.litert.convert import convert
from tfx_edge.litert.runner import SIGNATURE
from tfx_edge.litert.signatures import rename_signature
from tfx_edge.optimize.float_model import FloatModel, save_models
from tfx_edge.schemas import ConversionConfig, EdgeError
from tfx_edge.schemas.schemes import IoType


def convert_model(
    float_model: FloatModel, name: str, conversion: ConversionConfig = ConversionConfig(), quantized_io: IoType | None = None
) -> bytes:
    """Converts a model, whose signature is `serving_default`; see `convert_models`."""
    return convert_models({SIGNATURE: float_model}, name, conversion, quantized_io)


def convert_models(
    float_models: Mapping[str, FloatModel],
    name: str,
    conversion: ConversionConfig = ConversionConfig(),
    quantized_io: IoType | None = None,
) -> bytes:
    """Converts models into one flatbuffer. The same weights give the same bytes, in whichever component.

    Args:
        float_models: by the name of their signature, as `float_models.load_signatures` gives them.
        name: what to call them in an error.
        conversion: the batch, and whether TensorFlow's operators may be in it.
        quantized_io: for a model that emulates int8, see `convert`; None gives the float flatbuffer.

    Raises:
        EdgeError: the model can't be converted, or other signatures are asked for than there are.
    """
    if conversion.signatures and set(conversion.signatures) != set(float_models):
        raise EdgeError(
            f"{name}: conversion.signatures names {', '.join(conversion.signatures)}, this model is converted as "
            f"{', '.join(float_models)} alone; leave signatures out"
        )
    with tempfile.TemporaryDirectory(prefix="tfx-edge-") as scratch:  # local, as the converter reads no other
        saved_model = str(Path(scratch, "saved_model"))
        save_models(float_models, saved_model, conversion.batch_size)
        converted = convert(
            saved_model,
            name=name,
            quantized_io=quantized_io,
            signatures=sorted(float_models),
            select_tf_ops=conversion.select_tf_ops,
        )
    for signature, model in float_models.items():
        converted = rename_signature(converted, signature, *({saved: name for name, saved in names.items()} for names in model.saved_names))
    return converted
