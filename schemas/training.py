"""Fine-tuning, which every technique that changes weights shares."""

from typing import Literal

from pydantic import Field

from tfx_edge.schemas.config import Config


class FineTuningConfig(Config):
    """Training on the transformed examples after a model was changed. Needs no user code."""

    label_key: str = Field(min_length=1, description="The transformed feature that holds the label.")
    epochs: int = Field(default=3, ge=1, description="Passes over the split.")
    batch_size: int = Field(default=64, ge=1, description="Examples a step.")
    learning_rate: float = Field(default=1e-3, gt=0, description="Adam's step size.")
    loss: Literal["sparse_categorical_crossentropy", "categorical_crossentropy", "binary_crossentropy", "mean_squared_error"] | None = (
        Field(default=None, description="None takes the loss the model was compiled with, which also knows logits from probabilities.")
    )
    from_logits: bool = Field(
        default=False, description="With a cross-entropy named in loss: the model's outputs are logits, not probabilities."
    )
    split: str = Field(default="train", min_length=1, description="The split of the examples to train on.")
    seed: int = Field(default=0, ge=0, lt=2**31, description="Order of the examples.")
    shuffle_buffer: int = Field(default=10_000, ge=1, description="Examples held in memory to shuffle.")
