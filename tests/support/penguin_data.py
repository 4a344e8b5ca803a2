"""The penguins as tf.Examples, transformed without a TFX pipeline."""

import csv
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import tfx_edge.pipelines.penguins as penguins_package

CSV = Path(penguins_package.__file__).with_name("penguins.csv")


def rows() -> list[dict[str, float]]:
    """334 penguins: four features scaled to 0..1 and the species, 0 to 2."""
    with CSV.open() as file:
        return [{k: float(v) for k, v in row.items()} for row in csv.DictReader(file)]


def raw_examples() -> list[bytes]:
    """Serialized tf.Examples, in the file's order (sorted by species)."""
    import tensorflow as tf

    def feature(name: str, value: float) -> Any:
        if name == "species":
            return tf.train.Feature(int64_list=tf.train.Int64List(value=[int(value)]))
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))

    return [
        tf.train.Example(features=tf.train.Features(feature={k: feature(k, v) for k, v in row.items()})).SerializeToString()
        for row in rows()
    ]


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
    data = [{k: int(v) if k == penguins.LABEL else v for k, v in row.items()} for row in rows()]
    graph = folder / "transform_graph"
    options = beam.options.pipeline_options.PipelineOptions(["--runner=DirectRunner", "--direct_running_mode=in_memory"])
    with beam.Pipeline(options=options) as pipeline, tft_beam.Context(temp_dir=str(folder / "tmp")):
        dataset = (pipeline | beam.Create(data), metadata)
        (transformed, transformed_metadata), function = dataset | tft_beam.AnalyzeAndTransformDataset(penguins.preprocessing_fn)
        coder = tft.coders.ExampleProtoCoder(transformed_metadata.schema)
        _ = transformed | beam.Map(coder.encode) | beam.io.WriteToTFRecord(str(folder / "train" / "examples"), file_name_suffix=".gz")
        _ = function | tft_beam.WriteTransformFn(str(graph))
    metadata_io.write_metadata(metadata, str(graph / "metadata"))
    return SimpleNamespace(transform_output=str(graph), train_files=str(folder / "train" / "*.gz"), serving_model_dir="")
