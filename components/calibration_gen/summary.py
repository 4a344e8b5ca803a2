"""What is written about a sample."""

import hashlib

import numpy as np
import pyarrow as pa
from tensorflow_metadata.proto.v0 import schema_pb2

from tfx_edge.components import examples
from tfx_edge.components.calibration_gen.sampling import Sample
from tfx_edge.schemas import CalibrationConfig, CalibrationSummary, EdgeError, FeatureStatistics


def summarize(sample: Sample, config: CalibrationConfig, schema: schema_pb2.Schema) -> CalibrationSummary:
    """Counts a sample and measures its numeric dense features.

    Raises:
        EdgeError: the sample doesn't fit the schema, or a float feature of it holds NaN or infinity.
    """
    batch, tensors = examples.decode(sample.records, schema)
    _require_finite(batch)
    dense = examples.dense_features(batch, tensors)
    return CalibrationSummary(
        config=config,
        count=len(sample.records),
        population=sample.population,
        strata=dict(sorted(sample.strata.items())),
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


def _require_finite(batch: pa.RecordBatch) -> None:
    """Looks at every float feature, dense or not: one NaN or infinity makes a range that quantizes everything to nothing."""
    bad = []
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_large_list(column.type) and pa.types.is_floating(column.type.value_type):
            examples_of = np.asarray(column.value_parent_indices())
            count = len(np.unique(examples_of[~np.isfinite(np.asarray(column.flatten()))]))
            if count:
                bad.append(f"feature {name!r} is NaN or infinite in {count} of the {batch.num_rows} sampled examples")
    if bad:
        raise EdgeError(f"{'; '.join(bad)}; mend the data, or fill such values in Transform's preprocessing_fn")
