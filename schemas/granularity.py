"""Pruner: in what units weights go, and where a runtime gains from it."""

from typing import Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config

_KIND = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the granularities apart


class Unstructured(Config):
    """Single weights, wherever they are smallest: the least loss at a sparsity, and gain in compressed size alone."""

    model_config = _KIND

    kind: Literal["unstructured"] = "unstructured"


class Block(Config):
    """Rectangles of a rank-2 kernel (Dense, recurrent layers, Embedding), whole."""

    model_config = _KIND

    kind: Literal["block"] = "block"
    inputs: int = Field(default=4, ge=1, description="Rows of a block in Keras' kernel [inputs, outputs]; columns in the flatbuffer's.")
    outputs: int = Field(default=1, ge=1, description="Columns of a block in Keras' kernel [inputs, outputs]; rows in the flatbuffer's.")
    pooling: Literal["average", "maximum"] = Field(default="average", description="Of the magnitudes in a block: what ranks it.")


class MOfN(Config):
    """At least `zeros` zeros in each group of `group` weights that follow one another along the input channels.

    That is the last axis of a flatbuffer's FULLY_CONNECTED and CONV_2D weights, and what 2:4 hardware takes. 2:4 is the default.
    """

    model_config = _KIND

    kind: Literal["m_of_n"] = "m_of_n"
    zeros: int = Field(default=2, ge=1, description="Zeros in a group, at least.")
    group: int = Field(default=4, ge=2, description="Weights in a group.")

    def check(self) -> None:
        if self.zeros >= self.group:
            raise ValueError(f"zeros {self.zeros} must be less than group {self.group}")


class XnnpackLatency(Config):
    """Single weights of 1x1 convolutions, in float models that XNNPACK's sparse kernels are made for (https://arxiv.org/abs/1911.09723).

    Whether a device's runtime uses them shows in its latency alone: measure it.
    """

    model_config = _KIND

    kind: Literal["xnnpack_latency"] = "xnnpack_latency"


class Filters(Config):
    """Whole filters of convolutions and units of Dense layers, which leave the model, so that it has fewer weights and multiplications."""

    model_config = _KIND

    kind: Literal["filters"] = "filters"
    criterion: Literal["l1", "l2", "batch_norm"] = Field(
        default="l1",
        description="What ranks a filter: the norm of its kernel (Li et al. 2017, https://arxiv.org/abs/1608.08710), or the scale "
        "of the BatchNormalization behind it (Liu et al. 2017, https://arxiv.org/abs/1708.06519).",
    )
    multiple_of: int = Field(default=1, ge=1, description="The filters that a layer keeps are a multiple of this, as NPUs like it.")


Granularity = Unstructured | Block | MOfN | XnnpackLatency | Filters
