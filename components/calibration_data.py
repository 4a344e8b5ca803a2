"""CalibrationData as the components that collect ranges read it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from numpy.typing import NDArray
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx_bsl.tfxio import dataset_options, tensor_adapter, tf_example_record, tfxio

from tfx_edge.components.documents import read_bytes
from tfx_edge.schemas import CalibrationSummary, EdgeError, Signature, TensorSpec


@dataclass(frozen=True)
class Calibration:
    """Calibration examples.

    Attributes:
        name: what to call them in an error.
        source: reads them.
        digest: of their content.
    """

    name: str
    source: tfxio.TFXIO
    digest: str

    def check(self, signature: Signature) -> None:
        """Refuses data whose schema doesn't fit a model, before minutes go into converting it and reading the data.

        Raises:
            EdgeError: an input has no feature of its name, or one of another shape, or one whose values it can't hold: text, or
                floats for integers. Both sides are in the text.
        """
        specs = tensor_adapter.TensorAdapter(self.source.TensorAdapterConfig()).TypeSpecs()
        dense = {name: spec for name, spec in specs.items() if isinstance(spec, tf.TensorSpec)}
        wrong = [text for spec in signature.inputs if (text := _misfit(spec, dense.get(spec.name), sorted(dense)))]
        if wrong:
            raise EdgeError(f"{self.name}: {'; '.join(wrong)}; give the model the features that it was trained on, by its inputs' names")

    def first(self, inputs: Sequence[str], most: int) -> dict[str, NDArray[Any]]:
        """The first examples in the files' order, at most so many, `[n, ...]` each by feature name."""
        return next(self.batches(inputs, most), {})

    def batches(self, inputs: Sequence[str], batch_size: int) -> Iterator[dict[str, NDArray[Any]]]:
        """The examples in the files' order, `[n, ...]` each by feature name."""
        options = dataset_options.TensorFlowDatasetOptions(batch_size=batch_size, num_epochs=1, shuffle=False)
        yield from self.source.Project(sorted(inputs)).TensorFlowDataset(options).as_numpy_iterator()


def _misfit(wanted: TensorSpec, there: tf.TensorSpec | None, names: Sequence[str]) -> str | None:
    """What keeps a feature of the data from feeding an input of a model, with both sides; None if nothing does."""
    takes = f"the model's input takes {wanted.shape[1:]} of {wanted.dtype}"
    if there is None:
        return f"no feature {wanted.name!r}, {takes}; the dense features are {', '.join(map(repr, names))}"
    has = f"feature {wanted.name!r}: an example has {tuple(there.shape[1:])} of {there.dtype.name}, {takes}"
    if there.dtype == tf.string or (there.dtype.is_floating and np.dtype(wanted.dtype).kind in "iub"):
        return has
    try:
        wanted.fit(np.zeros((1, *there.shape[1:])))
    except EdgeError:
        return has
    return None


def read_calibration(artifacts: Sequence[Artifact] | None) -> Calibration | None:
    """The calibration data of an input channel, if there is any."""
    if not artifacts:
        return None
    uri = artifact_utils.get_single_uri(list(artifacts))
    schema = text_format.Parse(read_bytes(f"{uri}/schema.pbtxt"), schema_pb2.Schema())
    return Calibration(
        name=f"the calibration data at {uri}",
        source=tf_example_record.TFExampleRecord(f"{uri}/Split-calibration/*.gz", telemetry_descriptors=["tfx_edge"], schema=schema),
        digest=CalibrationSummary.from_json(read_bytes(f"{uri}/calibration.json")).digest,
    )
