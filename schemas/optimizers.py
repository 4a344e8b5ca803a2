"""How steps are taken in a training: the optimizer, its learning rate over time, and limits on the gradients."""

from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from tfx_edge.schemas.config import Config

_KIND_REQUIRED = ConfigDict(json_schema_extra={"required": ["kind"]})  # in a document it tells the kinds apart


class Sgd(Config):
    """Stochastic gradient descent, with momentum where it is not 0."""

    model_config = _KIND_REQUIRED

    kind: Literal["sgd"] = "sgd"
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Share of the step before that is taken again.")
    nesterov: bool = Field(default=False, description="Look ahead along the momentum (Nesterov 1983).")


class Adam(Config):
    """Adam (Kingma and Ba 2015, https://arxiv.org/abs/1412.6980)."""

    model_config = _KIND_REQUIRED

    kind: Literal["adam"] = "adam"
    beta_1: float = Field(default=0.9, ge=0, lt=1, description="Decay of the gradients' mean.")
    beta_2: float = Field(default=0.999, ge=0, lt=1, description="Decay of the squared gradients' mean.")
    epsilon: float = Field(default=1e-7, gt=0, description="Added to the denominator.")


class AdamW(Config):
    """Adam with weight decay apart from the gradient (Loshchilov and Hutter 2019, https://arxiv.org/abs/1711.05101)."""

    model_config = _KIND_REQUIRED

    kind: Literal["adamw"] = "adamw"
    weight_decay: float = Field(default=0.004, ge=0, description="Share of each weight that a step takes off, times the learning rate.")
    beta_1: float = Field(default=0.9, ge=0, lt=1, description="Decay of the gradients' mean.")
    beta_2: float = Field(default=0.999, ge=0, lt=1, description="Decay of the squared gradients' mean.")
    epsilon: float = Field(default=1e-7, gt=0, description="Added to the denominator.")


class RmsProp(Config):
    """Steps divided by the root of the mean squared gradient (Hinton 2012)."""

    model_config = _KIND_REQUIRED

    kind: Literal["rmsprop"] = "rmsprop"
    rho: float = Field(default=0.9, ge=0, lt=1, description="Decay of the squared gradients' mean.")
    momentum: float = Field(default=0.0, ge=0, lt=1, description="Share of the step before that is taken again.")
    epsilon: float = Field(default=1e-7, gt=0, description="Added to the denominator.")


class ConstantRate(Config):
    """The same learning rate in every step."""

    model_config = _KIND_REQUIRED

    kind: Literal["constant"] = "constant"


class ExponentialRate(Config):
    """The learning rate falls by the same factor in every step."""

    model_config = _KIND_REQUIRED

    kind: Literal["exponential"] = "exponential"
    final: float = Field(default=0.1, gt=0, le=1, description="What is left of the learning rate after the last step, as a share.")


class CosineRate(Config):
    """The learning rate falls along half a cosine (Loshchilov and Hutter 2017, https://arxiv.org/abs/1608.03983)."""

    model_config = _KIND_REQUIRED

    kind: Literal["cosine"] = "cosine"
    final: float = Field(default=0.0, ge=0, le=1, description="What is left of the learning rate after the last step, as a share.")


class StepRate(Config):
    """The learning rate falls in steps."""

    model_config = _KIND_REQUIRED

    kind: Literal["step"] = "step"
    factor: float = Field(default=0.1, gt=0, le=1, description="What each fall multiplies the learning rate by.")
    at: tuple[Annotated[float, Field(gt=0, lt=1)], ...] = Field(
        default=(0.5, 0.75), min_length=1, description="Where it falls, as shares of the steps after the warm-up, ascending."
    )

    def check(self) -> None:
        if list(self.at) != sorted(set(self.at)):
            raise ValueError(f"at {self.at} must ascend")


class GradientClipping(Config):
    """A limit on the gradients of each step."""

    by: Literal["value", "norm", "global_norm"] = Field(
        default="global_norm", description="Each element, each variable's L2 norm, or the L2 norm of all variables together."
    )
    limit: float = Field(default=1.0, gt=0, description="The largest value or norm.")


Optimizer = Sgd | Adam | AdamW | RmsProp
RateSchedule = ConstantRate | ExponentialRate | CosineRate | StepRate
