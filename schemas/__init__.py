"""Data contracts: configs of the components and the documents in their artifacts. Needs neither TensorFlow nor Beam."""

from tfx_edge.schemas.accuracy import AccuracyTarget, SearchTrial
from tfx_edge.schemas.augmentation import ImageAugmentation, SignalAugmentation, TextAugmentation
from tfx_edge.schemas.beam import DataflowBeam, DirectBeam, PortableBeam
from tfx_edge.schemas.calibration import (
    CalibrationConfig,
    CalibrationSummary,
    DuplicateCounts,
    FeatureStatistics,
    NonFiniteCounts,
    OverlapCounts,
    SharedExample,
)
from tfx_edge.schemas.channel_log import ChannelLog, LogEntry
from tfx_edge.schemas.channel_policy import ChannelPolicy, EmergencyStop, HealthRule, Lifetimes, PublicKey, RolloutStep
from tfx_edge.schemas.channel_status import ChannelStatus, ReleaseStatus, RoleStatus
from tfx_edge.schemas.clustering import ClusteredLayer, ClusteringConfig, ClusteringReport
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.conversion import ConversionConfig
from tfx_edge.schemas.corrections import AdaRound, BiasCorrection, CorrectedLayer, CrossLayerEqualization
from tfx_edge.schemas.decisions import (
    ConfusionMatrix,
    Disagreement,
    ExampleFeature,
    ExampleImage,
    OutputDecisions,
    OutputValue,
    PairedDecisions,
)
from tfx_edge.schemas.description import FlatbufferDescription
from tfx_edge.schemas.device import DeviceConfig, DeviceState, DeviceStatus, Verdict
from tfx_edge.schemas.distillation import DistillationConfig, DistillationReport, FeatureMatch, MatchedLayers, ScaledStudent
from tfx_edge.schemas.errors import ConfigError, EdgeError
from tfx_edge.schemas.export import ExportConfig, Manifest
from tfx_edge.schemas.gate import Budget, DriftLimit, GateConfig
from tfx_edge.schemas.gate_report import GateReport, MetricComparison, SliceDrift
from tfx_edge.schemas.granularity import Block, Filters, MOfN, Unstructured, XnnpackLatency
from tfx_edge.schemas.health import Enrolment, HealthReport, SignedReport
from tfx_edge.schemas.keyring import KeyReference, Keyring, TrustedRoot
from tfx_edge.schemas.kubeflow import (
    Accelerator,
    ComponentConfig,
    KubeflowConfig,
    Parameter,
    Resources,
    Retry,
    SecretEnv,
    SecretVolume,
    Toleration,
    Volume,
)
from tfx_edge.schemas.lineage import RunInfo, Toolchain
from tfx_edge.schemas.low_rank import EnergyRank, LayerFactorization, LowRankConfig, LowRankReport, MacBudget
from tfx_edge.schemas.model_metadata import AssociatedFile, ModelMetadata, Normalization, TensorMetadata
from tfx_edge.schemas.notify import Notification, NotifierConfig, PythonHook, Webhook
from tfx_edge.schemas.operators import LayerOperators, OperatorCost, OperatorsReport, OperatorTotals, SourceLayer
from tfx_edge.schemas.optimizers import Adam, AdamW, ConstantRate, CosineRate, ExponentialRate, GradientClipping, RmsProp, Sgd, StepRate
from tfx_edge.schemas.package_run import PackageRun, RecordedArtifact, TaskRecord
from tfx_edge.schemas.preparation import LeftLayer, PreparationReport, Rewrite
from tfx_edge.schemas.preprocessing import Preprocessing, RawFeature, TransformedFeature
from tfx_edge.schemas.promotion import PromotionConfig
from tfx_edge.schemas.provenance import DataSource, Evaluation, Provenance
from tfx_edge.schemas.pruning import (
    ConstantSparsity,
    FilterReport,
    LayerFilters,
    LayerSensitivity,
    LayerSparsity,
    PolynomialDecay,
    PruningConfig,
    SensitivityPoint,
    SensitivityReport,
    SensitivityScan,
    SparsityReport,
)
from tfx_edge.schemas.qat import QatConfig, QatLayer, QatReport
from tfx_edge.schemas.quantization import FloatOp, QuantizationConfig, QuantizationPlan
from tfx_edge.schemas.ranges import RangeConfig, RangeRule, TensorRange, TensorRanges
from tfx_edge.schemas.release import BundleFile, Cohort, DeviceInfo, Release, ReleaseIndex
from tfx_edge.schemas.run_report import JudgedModel, LineageArtifact, LineageStep, PastRun, RunReport
from tfx_edge.schemas.schedules import Schedule, Schedules, Window
from tfx_edge.schemas.schemes import SchemeRule
from tfx_edge.schemas.search import Between, OneOf, SearchConfig, SearchReport, TrialResult
from tfx_edge.schemas.selection import CandidateResult, SelectionConfig, SelectionReport
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
from tfx_edge.schemas.techniques import Techniques
from tfx_edge.schemas.tensors import Signature, TensorSpec
from tfx_edge.schemas.thresholds import Metric, Slice, Threshold
from tfx_edge.schemas.training import BatchNormalization, EarlyStopping, FineTuningConfig, Phase, Regularization

__all__ = [
    "Accelerator",
    "AccuracyTarget",
    "AdaRound",
    "Adam",
    "AdamW",
    "AssociatedFile",
    "BatchNormalization",
    "Between",
    "BiasCorrection",
    "Block",
    "Budget",
    "BundleFile",
    "CalibrationConfig",
    "CalibrationSummary",
    "CandidateResult",
    "ChannelLog",
    "ChannelPolicy",
    "ChannelStatus",
    "ClusteredLayer",
    "ClusteringConfig",
    "ClusteringReport",
    "Cohort",
    "ComponentConfig",
    "Config",
    "ConfigError",
    "ConfusionMatrix",
    "ConstantRate",
    "ConstantSparsity",
    "ConversionConfig",
    "CorrectedLayer",
    "CosineRate",
    "CrossLayerEqualization",
    "DataSource",
    "DataflowBeam",
    "DeviceConfig",
    "DeviceInfo",
    "DeviceState",
    "DeviceStatus",
    "DirectBeam",
    "Disagreement",
    "DistillationConfig",
    "DistillationReport",
    "DriftLimit",
    "DuplicateCounts",
    "EarlyStopping",
    "EdgeError",
    "EmergencyStop",
    "EnergyRank",
    "Enrolment",
    "Evaluation",
    "ExampleFeature",
    "ExampleImage",
    "ExponentialRate",
    "ExportConfig",
    "FeatureMatch",
    "FeatureStatistics",
    "FilterReport",
    "Filters",
    "FineTuningConfig",
    "FlatbufferDescription",
    "FloatOp",
    "GateConfig",
    "GateReport",
    "GradientClipping",
    "HealthReport",
    "HealthRule",
    "ImageAugmentation",
    "Interval",
    "JudgedModel",
    "KeyReference",
    "Keyring",
    "KubeflowConfig",
    "LayerError",
    "LayerErrors",
    "LayerFactorization",
    "LayerFilters",
    "LayerOperators",
    "LayerSensitivity",
    "LayerSparsity",
    "LeftLayer",
    "Lifetimes",
    "LineageArtifact",
    "LineageStep",
    "LogEntry",
    "LowRankConfig",
    "LowRankReport",
    "MOfN",
    "MacBudget",
    "Manifest",
    "MatchedLayers",
    "Metric",
    "MetricComparison",
    "ModelMetadata",
    "NonFiniteCounts",
    "Normalization",
    "Notification",
    "NotifierConfig",
    "OneOf",
    "OpPlacement",
    "OpRule",
    "OpRules",
    "OperatorCost",
    "OperatorTotals",
    "OperatorsReport",
    "OutputDecisions",
    "OutputDrift",
    "OutputValue",
    "OverlapCounts",
    "PackageRun",
    "PairedDecisions",
    "PairedMean",
    "PairedStatistics",
    "Parameter",
    "PastRun",
    "Phase",
    "PolynomialDecay",
    "PortableBeam",
    "PreparationReport",
    "Preprocessing",
    "PromotionConfig",
    "Provenance",
    "PruningConfig",
    "PublicKey",
    "PythonHook",
    "QatConfig",
    "QatLayer",
    "QatReport",
    "QuantizationConfig",
    "QuantizationPlan",
    "RangeConfig",
    "RangeRule",
    "RawFeature",
    "RecordedArtifact",
    "Regularization",
    "Release",
    "ReleaseIndex",
    "ReleaseStatus",
    "Resources",
    "Retry",
    "Rewrite",
    "RmsProp",
    "RoleStatus",
    "RolloutStep",
    "RunInfo",
    "RunReport",
    "ScaledStudent",
    "Schedule",
    "Schedules",
    "SchemeRule",
    "SearchConfig",
    "SearchReport",
    "SearchTrial",
    "SecretEnv",
    "SecretVolume",
    "SelectionConfig",
    "SelectionReport",
    "SensitivityPoint",
    "SensitivityReport",
    "SensitivityScan",
    "Sgd",
    "SharedExample",
    "SignalAugmentation",
    "Signature",
    "SignedReport",
    "Slice",
    "SliceDrift",
    "SliceStatistics",
    "SourceLayer",
    "SparsityReport",
    "StepRate",
    "Target",
    "TargetProfile",
    "TargetReport",
    "TaskRecord",
    "Techniques",
    "TensorMetadata",
    "TensorRange",
    "TensorRanges",
    "TensorSpec",
    "TextAugmentation",
    "Threshold",
    "Toleration",
    "Toolchain",
    "TransformedFeature",
    "TrialResult",
    "TrustedRoot",
    "Unstructured",
    "ValueMoments",
    "Verdict",
    "Volume",
    "Webhook",
    "Window",
    "XnnpackLatency",
]
