"""The digits pipeline with all its components, on a fifth of the data and with one layer: for runs whose models don't count."""

from pathlib import Path
from typing import Any

import tensorflow as tf
import tensorflow_transform as tft
import tf_keras
from sklearn.datasets import load_digits
from tfx.orchestration.pipeline import Pipeline

from tfx_edge.pipelines.example_files import split_rows, write_splits
from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.saving import save_model
from tfx_edge.pipelines.stage import edge_stage
from tfx_edge.schemas import CalibrationConfig, FineTuningConfig, GateConfig, PruningConfig, QuantizationConfig, Threshold

LABEL = "label"


def write_examples(folder: Path) -> None:
    images, labels = load_digits(return_X_y=True)
    rows = [{"image": image, LABEL: int(label)} for image, label in zip(images[:360], labels[:360], strict=True)]
    write_splits(folder, split_rows(rows, LABEL, 0))


def preprocessing_fn(inputs: dict[str, tf.Tensor]) -> dict[str, tf.Tensor]:
    return {"image": inputs["image"] / 16.0, LABEL: inputs[LABEL]}


def run_fn(fn_args: Any) -> None:
    spec = tft.TFTransformOutput(fn_args.transform_output).transformed_feature_spec()
    records = tf.data.TFRecordDataset(tf.io.gfile.glob(fn_args.train_files), "GZIP").batch(32)
    examples = records.map(lambda batch: tf.io.parse_example(batch, spec)).map(lambda e: ({"image": e["image"]}, e[LABEL]))
    image = tf_keras.Input((64,), name="image")
    model = tf_keras.Model(image, tf_keras.layers.Dense(10, activation="softmax", name="digit")(image))
    model.compile(tf_keras.optimizers.Adam(0.05), "sparse_categorical_crossentropy")
    model.fit(examples, epochs=fn_args.custom_config["epochs"], verbose=2)
    save_model(model, fn_args, label_key=LABEL)


def create_pipeline(root: str, data: str) -> Pipeline:
    """Its gate blesses what is better than a guess."""
    pipeline = local_pipeline(
        root,
        data,
        name="digits",
        user_code=__name__,
        stage=lambda trainer, transform: edge_stage(
            trainer,
            transform,
            pruning=PruningConfig(target_sparsity=0.3, fine_tuning=FineTuningConfig(label_key=LABEL, epochs=1)),
            calibration=CalibrationConfig(strategy="stratified", stratify_by=LABEL, num_examples=50),
            quantization=QuantizationConfig(scheme="int8"),
            gate=GateConfig(label_key=LABEL, thresholds=(Threshold(metric="SparseCategoricalAccuracy", lower_bound=0.2),)),
        ),
        custom_config={"epochs": 3},
    )
    [transform] = (component for component in pipeline.components if component.id == "Transform")
    transform.exec_properties["disable_statistics"] = 1  # half of its time, and StatisticsGen makes some
    return pipeline
