"""What the gate must know of a metric by its name: which way is better, and whether it looks at predictions at all."""

import re

# Keras' and TFMA's names. The first group lies between 0 and 1.
_SHARE = re.compile(r"Accuracy|AUC|Precision|Recall|F1|Specificity|Sensitivity|IoU|NDCG|TruePositiveRate|TrueNegativeRate")
_LOWER = re.compile(r"Error|Loss|Crossentropy|Hinge|Poisson|Divergence|LogCosh|False|MissRate|FallOut|Brier")
# TFMA's comparisons of two models' predictions: one value for both.
_COMPARISON = re.compile(r"FlipRates?$|ModelCosineSimilarity|SymmetricPredictionDifference")
_BLIND = ("ExampleCount", "WeightedExampleCount", "MeanLabel", "QueryStatistics")


def is_share(metric: str) -> bool:
    """Whether a metric lies between 0 and 1, where higher is better.

    >>> is_share("SparseCategoricalAccuracy"), is_share("MeanSquaredError")
    (True, False)
    """
    return bool(_SHARE.search(metric)) and not _LOWER.search(metric)


def higher_is_better(metric: str) -> bool | None:
    """Which way a metric is better; None where its name doesn't tell.

    >>> higher_is_better("AUC"), higher_is_better("MeanSquaredError"), higher_is_better("MyMetric")
    (True, False, None)
    """
    if _LOWER.search(metric):
        return False
    return True if is_share(metric) else None


def is_blind(metric: str) -> bool:
    """Whether a metric has the same value whatever a model predicts, so that a bound on it would bless anything."""
    return metric in _BLIND


def is_comparison(metric: str) -> bool:
    """Whether a metric compares the two models' predictions with each other and so has one value for both.

    >>> is_comparison("SymmetricFlipRate"), is_comparison("AUC")
    (True, False)
    """
    return bool(_COMPARISON.search(metric))
