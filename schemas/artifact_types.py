"""The suite's own artifact types. This module alone in `schemas` needs TFX.

Kubeflow Pipelines imports a type by its TYPE_NAME and fails on declared PROPERTIES, so the names are import paths below
the top-level package and facts about an artifact are custom properties.
"""

from tfx.types.artifact import Artifact


class CalibrationData(Artifact):
    """`Split-calibration/*.gz`, TFRecord of transformed tf.Examples, and `calibration.json` (`CalibrationSummary`)."""

    TYPE_NAME = "tfx_edge.CalibrationData"


class QuantizationPlan(Artifact):
    """`plan.json` (`schemas.QuantizationPlan`) and `ranges.json` (`schemas.TensorRanges`)."""

    TYPE_NAME = "tfx_edge.QuantizationPlan"


class EdgeReport(Artifact):
    """`report.json` (`GateReport`); of ModelSelector `selection.json`, of CompressionTuner `search.json` and `techniques.json`."""

    TYPE_NAME = "tfx_edge.EdgeReport"
