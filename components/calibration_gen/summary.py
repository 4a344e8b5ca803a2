"""What is written about a sample."""

import hashlib
from collections.abc import Mapping
from itertools import islice

import numpy as np
import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2

from tfx_edge.components import examples
from tfx_edge.components.calibration_gen.records import text
from tfx_edge.components.calibration_gen.sample import Sample
from tfx_edge.schemas import (
    CalibrationConfig,
    CalibrationSummary,
    DuplicateCounts,
    FeatureStatistics,
    NonFiniteCounts,
    OverlapCounts,
    SharedExample,
)

_NAMED, _VALUES = 5, 4  # shared examples that are named, and the values of each feature that are written then


def summarize(
    sample: Sample, non_finite: Mapping[str, int], held_out: tuple[str, ...], config: CalibrationConfig, schema: schema_pb2.Schema
) -> CalibrationSummary:
    """Counts a sample and measures its numeric dense features.

    Args:
        sample: what was drawn.
        non_finite: records left out, by feature, and under "" in all.
        held_out: splits that the sample was compared with.
        config: of the sample.
        schema: of the records.

    Raises:
        EdgeError: the sample doesn't fit the schema.
    """
    dense = examples.dense_features(*examples.decode(sample.records, schema))
    left_out = NonFiniteCounts(records=non_finite.get("", 0), features={name: n for name, n in sorted(non_finite.items()) if name})
    return CalibrationSummary(
        config=config,
        count=len(sample.records),
        population=sample.population + left_out.records,
        strata=dict(sorted(sample.strata.items())),
        extremes=sample.extremes,
        duplicates=DuplicateCounts(
            repeated=sample.repeated,
            copies=sample.copies,
            distinct_estimate=sample.distinct.count,
            distinct_error=float(f"{sample.distinct.error:.3g}"),
        ),
        non_finite=left_out,
        overlap=_overlap(sample, held_out) if held_out else None,
        features={
            name: FeatureStatistics(min=float(values.min()), max=float(values.max()), mean=float(values.mean(dtype=np.float64)))
            for name, values in sorted(dense.items())
            if values.dtype.kind in "iuf" and values.size
        },
        digest=digest(sample.records),
    )


def digest(records: tuple[bytes, ...]) -> str:
    """The sha256 over records in their order, each led by its length as 8 bytes, little-endian; as hexadecimal digits."""
    hashed = hashlib.sha256()
    for record in records:
        hashed.update(len(record).to_bytes(8, "little") + record)
    return hashed.hexdigest()


def _overlap(sample: Sample, held_out: tuple[str, ...]) -> OverlapCounts:
    named = tuple(_named(split, record) for split, record in islice(sample.shared.values(), _NAMED))
    return OverlapCounts(splits=held_out, checked=sample.checked, found=len(sample.shared), named=named)


def _named(split: str, record: bytes) -> SharedExample:
    features = tf.train.Example.FromString(record).features.feature
    values = {}
    for name in sorted(features):
        field = features[name].WhichOneof("kind")
        found = getattr(features[name], field).value
        more = f", ... ({len(found)} values)" if len(found) > _VALUES else ""
        values[name] = ", ".join(text(value, field)[:80] for value in found[:_VALUES]) + more
    return SharedExample(split=split, digest=hashlib.sha256(record).hexdigest(), values=values)
