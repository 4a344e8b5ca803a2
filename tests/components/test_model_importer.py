"""A pipeline's model that comes from a file instead of a Trainer."""

from pathlib import Path

import keras
import numpy as np
import pytest
from tfx.types import standard_artifacts

from tfx_edge.components import float_models, keys
from tfx_edge.components.model_importer.component import ModelImporter
from tfx_edge.components.model_importer.executor import Executor
from tfx_edge.schemas import EdgeError


def run(component: ModelImporter, folder: Path) -> standard_artifacts.Model:
    artifact = standard_artifacts.Model()
    artifact.uri = str(folder)
    Executor().Do({}, {keys.MODEL: [artifact]}, component.exec_properties)
    return artifact


def test_a_keras_3_file_becomes_a_model_artifact_that_the_suite_loads(tmp_path: Path) -> None:
    inputs = keras.Input((4,), name="x")
    model = keras.Model(inputs, keras.layers.Dense(2, name="y")(inputs))
    path = str(tmp_path / "model.keras")
    model.save(path)
    artifact = run(ModelImporter(path=path), tmp_path / "artifact")
    loaded = float_models.load([artifact])
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(loaded.predict({"x": x})["y"], model(x), rtol=1e-5, atol=1e-6)
    assert loaded.keras_model is not None and artifact.get_string_custom_property("imported_from") == path


def test_nothing_is_left_where_the_import_fails(tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="no model file at"):
        run(ModelImporter(path=str(tmp_path / "none.h5")), tmp_path / "artifact")
    assert not (tmp_path / "artifact").exists()
