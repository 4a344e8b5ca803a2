"""From the float model to the float flatbuffer, before anything is quantized."""

from pydantic import Field

from tfx_edge.schemas.config import Config


class ConversionConfig(Config):
    """What Quantizer and TFLiteExporter must do alike, so that a plan fits: the plan keeps it.

    >>> from tfx_edge.schemas import ConversionConfig
    >>> ConversionConfig(batch_size=1).batch_size
    1
    """

    batch_size: int | None = Field(
        default=None,
        ge=1,
        description="Fixes the batch, so that every shape in the flatbuffer is known, as the Edge TPU needs; None: any batch, or of one "
        "example where the model loops over time steps.",
    )
    signatures: tuple[str, ...] = Field(
        default=(),
        description="Names of the SavedModel's signatures to be exported, all in one flatbuffer; empty: the model itself, as "
        "serving_default.",
    )
    select_tf_ops: bool = Field(
        default=False,
        description="Lets operators in that LiteRT has not and TensorFlow's own kernels compute. Apps must bring these; the gate blesses "
        "no such model, since LiteRT alone can't run it.",
    )

    @property
    def main_signature(self) -> str:
        """The signature that apps call, and that labels, metadata and golden vectors are of: `serving_default`, or the first one named.

        >>> from tfx_edge.schemas import ConversionConfig
        >>> ConversionConfig(signatures=("encode", "decode")).main_signature
        'encode'
        """
        return "serving_default" if not self.signatures or "serving_default" in self.signatures else self.signatures[0]

    def check(self) -> None:
        twice = [name for name in self.signatures if self.signatures.count(name) > 1]
        if twice:
            raise ValueError(f"signatures has {twice[0]!r} twice; name it once")
        if "" in self.signatures:
            raise ValueError("signatures has an empty name; leave it out")
