"""Transformed Examples as the dataset that fine-tuning takes."""

import functools
from collections.abc import Sequence

import tensorflow as tf
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.types.artifact import Artifact
from tfx_bsl.tfxio import dataset_options, tfxio

from tfx_edge.components import examples as example_sources
from tfx_edge.optimize.error_text import one_line
from tfx_edge.schemas import EdgeError

_PARSE_BATCH = 1024  # examples parsed at once; one at a time is slow


def training_dataset(
    examples: Sequence[Artifact], split: str, schema: schema_pb2.Schema, features: Sequence[str], label_key: str
) -> tf.data.Dataset:
    """Reads a split as single examples; nothing is held in memory.

    Args:
        examples: the artifacts of one input channel.
        split: the split's name.
        schema: of the transformed features.
        features: what the model takes; other features aren't even parsed.
        label_key: the feature that is the label; it may be one of `features` too, as for an autoencoder.

    Returns:
        One pass over `(features by name, label)`, each as the schema types and shapes it, in the files' order.

    Raises:
        EdgeError: the split isn't there or is empty, or the schema lacks the label or one of the features.
    """
    known = sorted(feature.name for feature in schema.feature)
    for name, what in [(label_key, "label"), *((name, "feature") for name in features)]:
        if name not in known:
            fix = "set label_key to one of these" if what == "label" else "name the model's inputs as the features"
            raise EdgeError(f"{what} {name!r}: not among the transformed features {', '.join(known)}; {fix}")
    sources = example_sources.split_sources(examples, split, schema)
    dataset = functools.reduce(tf.data.Dataset.concatenate, (_read(source, {*features, label_key}) for source in sources)).unbatch()
    where = f"split {split!r} of the examples at {', '.join(artifact.uri for artifact in examples)}"
    try:
        empty = not any(True for _ in dataset.take(1))
    except tf.errors.OpError as error:
        raise EdgeError(f"{where} can't be read by the schema: {one_line(error)}; mend the data or Transform's preprocessing_fn") from error
    if empty:
        raise EdgeError(f"{where}: no examples; run the component that makes them again")
    return dataset.map(lambda values: ({name: values[name] for name in features}, values[label_key]))


def _read(source: tfxio.TFXIO, names: set[str]) -> tf.data.Dataset:
    options = dataset_options.TensorFlowDatasetOptions(batch_size=_PARSE_BATCH, num_epochs=1, shuffle=False)
    return source.Project(sorted(names)).TensorFlowDataset(options)
