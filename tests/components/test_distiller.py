"""The component on artifacts built by hand, from a saved teacher and Examples in to a student out."""

import json
from pathlib import Path

import numpy as np
import tf_keras
from example_shards import example, examples_artifact, schema, schema_artifact
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.components import keys
from tfx_edge.components.distiller.component import Distiller
from tfx_edge.components.distiller.executor import Executor
from tfx_edge.schemas import DistillationConfig, DistillationReport, EarlyStopping, FineTuningConfig, ScaledStudent

VALUES = np.random.default_rng(0).normal(size=(240, 3)).astype(np.float32)
LABELS = VALUES.argmax(axis=1)
CONFIG = DistillationConfig(
    student=ScaledStudent(width=0.5),
    alpha=0.8,
    fine_tuning=FineTuningConfig(
        label_key="label", epochs=15, batch_size=20, learning_rate=0.02, early_stopping=EarlyStopping(split="eval")
    ),
)
STUDENT = """
import tf_keras
def student_fn(teacher):
    inputs = tf_keras.Input((3,), name="x")
    return tf_keras.Model(inputs, tf_keras.layers.Dense(3, "softmax", name="only")(inputs))
"""


def inputs(folder: Path):
    tf_keras.utils.set_random_seed(3)
    x = tf_keras.Input((3,), name="x")
    model = tf_keras.Model(x, tf_keras.layers.Dense(3, "softmax")(tf_keras.layers.Dense(24, "relu", name="hidden")(x)))
    model.compile(tf_keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy", metrics=["accuracy"])
    model.fit(VALUES, LABELS, epochs=10, verbose=0)
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder / "teacher")
    model.save(f"{artifact.uri}/Format-Serving", save_format="tf")
    records = [example({"x": list(map(float, v)), "label": [int(y)]}) for v, y in zip(VALUES, LABELS, strict=True)]
    return {
        keys.FLOAT_MODEL: [artifact],
        keys.EXAMPLES: [examples_artifact(folder / "examples", {"train": [records[:200]], "eval": [records[200:]]})],
        keys.SCHEMA: [schema_artifact(folder / "schema", schema(x=("FLOAT", 3), label=("INT",)))],
    }


def test_a_student_is_taught_on_one_split_and_watched_on_another(tmp_path, monkeypatch):
    given = inputs(tmp_path)
    (tmp_path / "student_of_this_test.py").write_text(STUDENT)
    monkeypatch.syspath_prepend(tmp_path)
    for name, module in (("scaled", None), ("own", "student_of_this_test")):
        output = standard_artifacts.Model()
        output.uri = str(tmp_path / name)
        Path(output.uri).mkdir()
        Executor().Do(given, {keys.MODEL: [output]}, {keys.CONFIG: CONFIG.to_json(), keys.MODULE_PATH: module})
        report = DistillationReport.from_json(Path(output.uri, "distillation.json").read_text())
        student = tf_keras.models.load_model(f"{output.uri}/Format-Serving")
        assert student.evaluate(VALUES, LABELS, verbose=0)[1] > 0.8
        assert report.student_parameters == student.count_params() == {"scaled": 4 * 12 + 13 * 3, "own": 4 * 3}[name]
        assert output.get_float_custom_property("parameter_share") == report.student_parameters / report.teacher_parameters
        assert "val_loss" in report.losses and report.losses["val_accuracy"][-1] > 0.7


def test_the_config_is_kept_as_json_with_the_component():
    channels = {"model": Channel(type=standard_artifacts.Model), "examples": Channel(type=standard_artifacts.Examples)}
    component = Distiller(**channels, schema=Channel(type=standard_artifacts.Schema), config=CONFIG, module_path="package.module")
    assert json.loads(component.exec_properties[keys.CONFIG])["alpha"] == 0.8
    assert component.exec_properties[keys.MODULE_PATH] == "package.module"
