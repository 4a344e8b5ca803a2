"""Fine-tuning, which every technique that changes weights shares."""

from typing import Annotated, Literal

from pydantic import Field

from tfx_edge.schemas.augmentation import Augmentation
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.optimizers import Adam, ConstantRate, GradientClipping, Optimizer, RateSchedule

LossName = Literal[
    "sparse_categorical_crossentropy",
    "categorical_crossentropy",
    "binary_crossentropy",
    "mean_squared_error",
    "hinge",
    "categorical_hinge",
    "huber",
]


class Phase(Config):
    """A part of the training with a batch size of its own."""

    share: float = Field(gt=0, le=1, description="Share of the epochs; each phase gets at least one.")
    batch_size: int = Field(ge=1, description="Examples a step.")


class EarlyStopping(Config):
    """Stops when a figure on examples that aren't trained on no longer gets better."""

    monitor: str = Field(
        default="val_loss", min_length=1, description="A name in Keras' history; one that ends in accuracy, acc or auc is to rise."
    )
    patience: int = Field(default=2, ge=1, description="Epochs without a gain after which training ends.")
    min_delta: float = Field(default=0.0, ge=0, description="What counts as a gain.")
    restore_best: bool = Field(default=True, description="Take the weights of the best epoch; no: those of the last.")
    start: float = Field(
        default=0.0, ge=0, lt=1, description="Share of the epochs before which nothing counts, as while a pruning schedule still runs."
    )
    split: str | None = Field(
        default=None, min_length=1, description="The split to look at, such as eval. None: every holdout-th example isn't trained on."
    )
    holdout: int = Field(default=10, ge=2, description="Without a split: every how many examples one is held out.")


class Regularization(Config):
    """Penalties and dropout while training; nothing of it stays in the model."""

    l1: float = Field(default=0.0, ge=0, description="Times the sum of the kernels' absolute values; with l2 an elastic net.")
    l2: float = Field(default=0.0, ge=0, description="Times the sum of the kernels' squares.")
    dropout: float | None = Field(
        default=None, ge=0, lt=1, description="The rate of the model's dropout layers, in place of their own; None leaves each its own."
    )

    def check(self) -> None:
        if not self.l1 and not self.l2 and self.dropout is None:
            raise ValueError("regularization sets nothing; give l1, l2 or dropout, or leave it out")


class BatchNormalization(Config):
    """Moving means and variances of BatchNormalization layers."""

    momentum: float | None = Field(default=None, ge=0, lt=1, description="While training, in place of the layers' own.")
    recalibrate: bool = Field(default=False, description="After training, take the mean over the batches of the data in their place.")
    batches: int | None = Field(default=None, ge=1, description="How many batches for that; None: all.")

    def check(self) -> None:
        if self.momentum is None and not self.recalibrate:
            raise ValueError("batch_normalization sets nothing; give momentum or recalibrate, or leave it out")


class FineTuningConfig(Config):
    """Training on the transformed examples after a model was changed. Needs no user code."""

    label_key: str = Field(min_length=1, description="The transformed feature that holds the label.")
    epochs: int = Field(default=3, ge=1, description="Passes over the split.")
    batch_size: int = Field(default=64, ge=1, description="Examples a step.")
    phases: tuple[Phase, ...] = Field(
        default=(), description="Batch sizes one after the other, in place of batch_size; shares add up to 1."
    )
    optimizer: Annotated[Optimizer, Field(discriminator="kind")] = Field(default=Adam(), description="What turns gradients into steps.")
    learning_rate: float = Field(default=1e-3, gt=0, description="The optimizer's step size; where it changes, its highest.")
    schedule: Annotated[RateSchedule, Field(discriminator="kind")] = Field(
        default=ConstantRate(), description="The learning rate after the warm-up."
    )
    warm_up: float = Field(
        default=0.0, ge=0, lt=1, description="Share of all steps in which the learning rate rises linearly to its full height."
    )
    clipping: GradientClipping | None = Field(default=None, description="A limit on the gradients.")
    loss: LossName | None = Field(
        default=None, description="None takes the loss the model was compiled with, which also knows logits from probabilities."
    )
    from_logits: bool = Field(
        default=False, description="With a cross-entropy named in loss: the model's outputs are logits, not probabilities."
    )
    huber_delta: float = Field(default=1.0, gt=0, description="With huber: the error where it turns from square to linear.")
    output_losses: dict[str, LossName] = Field(
        default={}, description="A model with several outputs: its output names to their losses; labels come by output name then."
    )
    class_weights: Literal["balanced"] | tuple[Annotated[float, Field(ge=0)], ...] | None = Field(
        default=None, description="What an example of each class counts, from class 0 upwards; balanced: the rarer the class, the more."
    )
    regularization: Regularization | None = Field(default=None, description="Penalties and dropout.")
    batch_normalization: BatchNormalization | None = Field(default=None, description="Moving means and variances.")
    early_stopping: EarlyStopping | None = Field(default=None, description="Stopping before the last epoch.")
    augmentation: tuple[Annotated[Augmentation, Field(discriminator="kind")], ...] = Field(
        default=(), description="Random changes to the features, one after the other; never to validation examples."
    )
    split: str = Field(default="train", min_length=1, description="The split of the examples to train on.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Order of the examples.")
    shuffle_buffer: int = Field(default=10_000, ge=1, description="Examples held in memory to shuffle.")
    memory_mb: float | None = Field(
        default=None,
        gt=0,
        description="Examples stay in memory after the first epoch if all fit in this; else they are read again, shuffle_buffer cut to it.",
    )
    prefetch: int | None = Field(default=None, ge=0, description="Batches made ready ahead; None leaves it to TensorFlow.")
    checkpoint_dir: str | None = Field(
        default=None,
        min_length=1,
        description="A folder of this training's own: killed and started again, it goes on after its last whole epoch.",
    )
    tensorboard_dir: str | None = Field(default=None, min_length=1, description="Where TensorBoard's logs go.")
    progress: bool = Field(default=False, description="A progress bar on standard error; a line an epoch where that is no terminal.")

    def check(self) -> None:
        self._check_losses()
        if self.phases:
            if abs(sum(phase.share for phase in self.phases) - 1) > 1e-6:
                raise ValueError(f"the shares of phases add up to {sum(phase.share for phase in self.phases):g}; they must add up to 1")
            if self.epochs < len(self.phases):
                raise ValueError(f"epochs {self.epochs} must be at least the number of phases, {len(self.phases)}")
        if self.class_weights is not None and self.class_weights != "balanced" and not any(self.class_weights):
            raise ValueError("class_weights has no weight above 0, so that no example would count; give one, or leave it out")
        if self.class_weights is not None and self.output_losses:
            raise ValueError("class_weights and output_losses can't go together: Keras weighs the classes of one output; leave one out")

    def _check_losses(self) -> None:
        if self.loss is not None and self.output_losses:
            raise ValueError("loss and output_losses both name losses; leave one out")
        named = {self.loss, *self.output_losses.values()}
        if self.from_logits and not any(name is not None and name.endswith("_crossentropy") for name in named):
            raise ValueError(
                "from_logits has no effect without a cross-entropy named in loss or output_losses: the loss that the model was compiled "
                "with knows it; leave it out, or name the loss"
            )
        if self.huber_delta != 1 and "huber" not in named:
            raise ValueError(f"huber_delta {self.huber_delta:g} has no effect without loss 'huber'; leave it out, or name the loss")
