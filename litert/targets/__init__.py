"""Does a model suit a device: one check a kind of device, and budgets held against what it measures."""

from tfx_edge.litert.targets.check import check

__all__ = ["check"]
