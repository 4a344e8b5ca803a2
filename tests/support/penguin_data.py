"""The penguins as tf.Examples, transformed without a TFX pipeline."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tfx_edge.pipelines.example_files import serialize
from tfx_edge.pipelines.penguins.data import rows


def raw_examples() -> list[bytes]:
    """Serialized tf.Examples, in the file's order (sorted by species)."""
    return [serialize(row) for row in rows()]


def transform(folder: Path) -> SimpleNamespace:
    """Analyzes and transforms the penguins with TFT; returns what TFX would hand to run_fn."""
    import apache_beam as beam
    import penguins
    import tensorflow as tf
    import tensorflow_transform as tft
    import tensorflow_transform.beam as tft_beam
    from tensorflow_transform.tf_metadata import dataset_metadata, metadata_io, schema_utils

    spec: dict[str, Any] = {name: tf.io.FixedLenFeature([], tf.float32) for name in penguins.FEATURES}
    spec[penguins.LABEL] = tf.io.FixedLenFeature([], tf.int64)
    metadata = dataset_metadata.DatasetMetadata(schema_utils.schema_from_feature_spec(spec))
    graph = folder / "transform_graph"
    options = beam.options.pipeline_options.PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline, tft_beam.Context(temp_dir=str(folder / "tmp")):
        dataset = (pipeline | beam.Create(rows()), metadata)
        (transformed, transformed_metadata), function = dataset | tft_beam.AnalyzeAndTransformDataset(penguins.preprocessing_fn)
        coder = tft.coders.ExampleProtoCoder(transformed_metadata.schema)
        _ = transformed | beam.Map(coder.encode) | beam.io.WriteToTFRecord(str(folder / "train" / "examples"), file_name_suffix=".gz")
        _ = function | tft_beam.WriteTransformFn(str(graph))
    metadata_io.write_metadata(metadata, str(graph / "metadata"))
    return SimpleNamespace(transform_output=str(graph), train_files=str(folder / "train" / "*.gz"), serving_model_dir="")
