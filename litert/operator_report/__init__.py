"""`edge/ops.json`: what each operator of a flatbuffer costs, and what became of each layer of the Keras model.

report = operator_report(model, source_layers(keras_model))
report.totals.macs
assert not unfused_blocks(report)  # every convolution with its normalization and ReLU is one operator

report.py       the report
reading.py      operators with the sizes, types and constants of their tensors
extents.py      sizes that the file leaves open, for one example
attribution.py  which layers an operator computes
fusion.py       what became of each layer, and why it wasn't fused
kinds.py        which operators and layers can be fused at all
"""

from tfx_edge.litert.operator_report.fusion import UnfusedBlock, unfused_blocks
from tfx_edge.litert.operator_report.report import operator_report

__all__ = ["UnfusedBlock", "operator_report", "unfused_blocks"]
