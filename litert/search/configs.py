"""Configs with other fields."""

from typing import Any

from tfx_edge.schemas import QuantizationConfig


def changed(config: QuantizationConfig, **fields: Any) -> QuantizationConfig:
    """A config with other values in some fields, checked as one that a user writes.

    Raises:
        ConfigError: the fields don't fit each other.
    """
    return QuantizationConfig.model_validate({**dict(config), **fields})
