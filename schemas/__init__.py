"""Data contracts: configs of the components and the documents in their artifacts. Needs neither TensorFlow nor Beam."""

from tfx_edge.schemas.calibration import CalibrationConfig, CalibrationSummary, FeatureStatistics
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.errors import ConfigError, EdgeError
from tfx_edge.schemas.export import ExportConfig, Manifest
from tfx_edge.schemas.gate import Budget, GateConfig, GateReport, MetricComparison, Slice, Threshold
from tfx_edge.schemas.pruning import ConstantSparsity, LayerSparsity, PolynomialDecay, PruningConfig, SparsityReport
from tfx_edge.schemas.quantization import FloatOp, QuantizationConfig, QuantizationPlan, TensorRange, TensorRanges
from tfx_edge.schemas.tensors import Signature, TensorSpec
from tfx_edge.schemas.training import FineTuningConfig

__all__ = [
    "Budget",
    "CalibrationConfig",
    "CalibrationSummary",
    "Config",
    "ConfigError",
    "ConstantSparsity",
    "EdgeError",
    "ExportConfig",
    "FeatureStatistics",
    "FineTuningConfig",
    "FloatOp",
    "GateConfig",
    "GateReport",
    "LayerSparsity",
    "Manifest",
    "MetricComparison",
    "PolynomialDecay",
    "PruningConfig",
    "QuantizationConfig",
    "QuantizationPlan",
    "Signature",
    "Slice",
    "SparsityReport",
    "TensorRange",
    "TensorRanges",
    "TensorSpec",
    "Threshold",
]
