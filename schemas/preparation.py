"""Edge preparation: which layers of a model were rewritten into equal ones that a device and every technique take."""

from pydantic import Field

from tfx_edge.schemas.config import Config


class Rewrite(Config):
    """One layer that was replaced by an equal form."""

    layer: str = Field(description="Name of the layer in the model as it was.")
    type: str = Field(description="Its Keras class.")
    became: str = Field(description="What stands in its place.")
    reason: str = Field(description="Why it could not stay.")


class LeftLayer(Config):
    """One layer that stays as it is and that its reader should know of."""

    layer: str
    type: str = Field(description="Its Keras class.")
    reason: str = Field(description="Why it stays, and what follows from it.")


class PreparationReport(Config):
    """What preparing a model for the edge changed. A prepared model needs no rewrite."""

    rewrites: tuple[Rewrite, ...] = Field(default=(), description="In the order of the model.")
    left: tuple[LeftLayer, ...] = Field(default=(), description="Layers with inner layers out of reach, and others worth a word.")
    examples: int = Field(default=0, ge=0, description="Examples on which outputs were compared; 0 where nothing was rewritten.")
    real_examples: bool = Field(default=False, description="They were given, not made up.")
    max_abs_difference: float = Field(default=0.0, ge=0, description="Largest difference of any output value on them.")

    @property
    def changed(self) -> bool:
        """Whether the model was rewritten at all."""
        return bool(self.rewrites)
