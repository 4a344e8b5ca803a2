"""Data contracts: configs of the components and the documents in their artifacts. Needs neither TensorFlow nor Beam."""

from tfx_edge.schemas.calibration import CalibrationConfig, CalibrationSummary, FeatureStatistics
from tfx_edge.schemas.clustering import ClusteredLayer, ClusteringConfig, ClusteringReport
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.errors import ConfigError, EdgeError
from tfx_edge.schemas.export import ExportConfig, Manifest
from tfx_edge.schemas.gate import Budget, DriftLimit, GateConfig
from tfx_edge.schemas.gate_report import GateReport, MetricComparison, SliceDrift
from tfx_edge.schemas.low_rank import EnergyRank, LayerFactorization, LowRankConfig, LowRankReport, MacBudget
from tfx_edge.schemas.preparation import LeftLayer, PreparationReport, Rewrite
from tfx_edge.schemas.pruning import ConstantSparsity, LayerSparsity, PolynomialDecay, PruningConfig, SparsityReport
from tfx_edge.schemas.quantization import FloatOp, QuantizationConfig, QuantizationPlan, TensorRange, TensorRanges
from tfx_edge.schemas.statistics import (
    Interval,
    LayerError,
    LayerErrors,
    OutputDrift,
    PairedMean,
    PairedStatistics,
    SliceStatistics,
    ValueMoments,
)
from tfx_edge.schemas.target import OpPlacement, OpRule, OpRules, Target, TargetProfile, TargetReport
from tfx_edge.schemas.tensors import Signature, TensorSpec
from tfx_edge.schemas.thresholds import Metric, Slice, Threshold
from tfx_edge.schemas.training import FineTuningConfig

__all__ = [
    "Budget",
    "CalibrationConfig",
    "CalibrationSummary",
    "ClusteredLayer",
    "ClusteringConfig",
    "ClusteringReport",
    "Config",
    "ConfigError",
    "ConstantSparsity",
    "DriftLimit",
    "EdgeError",
    "EnergyRank",
    "ExportConfig",
    "FeatureStatistics",
    "FineTuningConfig",
    "FloatOp",
    "GateConfig",
    "GateReport",
    "Interval",
    "LayerError",
    "LayerErrors",
    "LayerFactorization",
    "LayerSparsity",
    "LeftLayer",
    "LowRankConfig",
    "LowRankReport",
    "MacBudget",
    "Manifest",
    "Metric",
    "MetricComparison",
    "OpPlacement",
    "OpRule",
    "OpRules",
    "OutputDrift",
    "PairedMean",
    "PairedStatistics",
    "PolynomialDecay",
    "PreparationReport",
    "PruningConfig",
    "QuantizationConfig",
    "QuantizationPlan",
    "Rewrite",
    "Signature",
    "Slice",
    "SliceDrift",
    "SliceStatistics",
    "SparsityReport",
    "Target",
    "TargetProfile",
    "TargetReport",
    "TensorRange",
    "TensorRanges",
    "TensorSpec",
    "Threshold",
    "ValueMoments",
]
