"""`edge/ops.json`: what each operator of a flatbuffer costs, and what became of each layer of the model."""

from pydantic import Field

from tfx_edge.schemas.config import Config

_IDENTITIES = frozenset(
    {"ActivityRegularization", "AlphaDropout", "Dropout", "GaussianDropout", "GaussianNoise", "SpatialDropout1D", "SpatialDropout2D"}
    | {"QuantizeLayer", "SpatialDropout3D"}
)


class SourceLayer(Config):
    """One layer of a Keras model, as far as it matters for what it becomes."""

    name: str
    kind: str = Field(description="Keras' class name, for example Conv2D.")
    inputs: tuple[str, ...] = Field(default=(), description="Layers whose outputs it reads; none for a layer on the model's inputs.")
    outputs: tuple[str, ...] = Field(default=(), description="The model's outputs that it gives.")
    activation: str | None = Field(default=None, description="Keras' name of the activation that it is, or that is part of it.")

    @property
    def is_identity(self) -> bool:
        """Whether it computes nothing once the model is trained."""
        return self.kind in _IDENTITIES or (self.kind == "Activation" and self.activation is None)


class OperatorCost(Config):
    """One operator of a flatbuffer."""

    graph: int = Field(ge=0, description="Which graph it stands in; 0 is the main one.")
    kind: str = Field(description="LiteRT's name, for example CONV_2D.")
    version: int
    name: str = Field(description="Name of its first output; the converter joins by ; the names of the nodes that it fused.")
    layers: tuple[str, ...] = Field(description="The layers that it computes, in the model's order; empty where none is known.")
    activation: str | None = Field(description="LiteRT's name of the activation that is part of it, for example RELU.")
    macs: int | None = Field(
        description="Multiplications of activations with weights, or of two activations in a matrix product, for one example; "
        "0 for what multiplies no matrices. None where it can't be known: loops, custom operators, sizes that the input decides."
    )
    parameters: int = Field(ge=0, description="Elements of the constants it reads that stand for real numbers: weights and biases.")
    constant_bytes: int = Field(ge=0, description="Of all constants it reads, shapes and axes included.")
    shape: tuple[int, ...] = Field(description="Of its first output; -1 where the size is open.")
    dtype: str = Field(description="Element type of its first output, for example int8.")
    computes_in: str = Field(
        description="float32, float16, int8, int16 or another element type; hybrid where it quantizes float inputs itself to meet "
        "integer weights; conversion between two of these."
    )


class LayerOperators(SourceLayer):
    """What became of one layer."""

    operators: tuple[int, ...] = Field(description="Positions in `operators` of those that compute it, or a part of it.")
    fused_into: str | None = Field(description="The layer whose operator computes it as well; None where it has one of its own, or none.")
    reason: str | None = Field(
        description="Why a normalization or an activation isn't part of the operator before it, or why a layer has no operator."
    )


class OperatorTotals(Config):
    """Over all graphs, each operator once."""

    operators: int = Field(ge=0)
    macs: int = Field(ge=0, description="Of the operators that could be counted, for one example.")
    uncounted: dict[str, int] = Field(description="Operators whose multiplications aren't in `macs`: how many of which kind.")
    parameters: int = Field(ge=0, description="A constant that several operators read counts once.")
    constant_bytes: int = Field(ge=0, description="Likewise.")


class OperatorsReport(Config):
    """`edge/ops.json`."""

    totals: OperatorTotals
    operators: tuple[OperatorCost, ...] = Field(description="In the flatbuffer's order, which is that of execution in each graph.")
    layers: tuple[LayerOperators, ...] = Field(
        description="Of the Keras model that was converted, in its order; empty where there is none."
    )
