"""The component on artifacts built by hand: a saved model and Examples in, a clustered model and its report out."""

from pathlib import Path

import numpy as np
import tf_keras
from example_shards import examples_artifact, transform_graph_artifact
from exporting import SCHEMA, files, keras_model, model_artifact, records, values
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Examples, Model, TransformGraph

from tfx_edge.components import keys
from tfx_edge.components.clusterer.component import Clusterer
from tfx_edge.components.clusterer.executor import Executor
from tfx_edge.schemas import ClusteringConfig, ClusteringReport, FineTuningConfig

CONFIG = ClusteringConfig(
    clusters={"logits": 5, "dense*": 7},
    fine_tuning=FineTuningConfig(label_key="species", epochs=1, batch_size=32, loss="sparse_categorical_crossentropy", from_logits=True),
)


def test_a_saved_model_is_clustered_and_its_report_agrees_with_the_saved_weights(tmp_path: Path) -> None:
    output = Model()
    output.uri = str(tmp_path / "output")
    Path(output.uri).mkdir()  # as TFX does
    inputs = {
        keys.FLOAT_MODEL: [model_artifact(tmp_path / "model", keras_model())],
        keys.EXAMPLES: [examples_artifact(tmp_path / "examples", {"train": [records(values())]})],
        keys.TRANSFORM_GRAPH: [transform_graph_artifact(tmp_path / "graph", SCHEMA)],
    }
    Executor().Do(inputs, {keys.MODEL: [output]}, {keys.CONFIG: CONFIG.to_json(), keys.MODEL_FN: None, keys.MODULE_PATH: None})
    report = ClusteringReport.from_json(files(output.uri)["clusters.json"])
    model = tf_keras.models.load_model(f"{output.uri}/Format-Serving")
    kernels = {w.name.split("/")[0]: w.numpy() for w in model.weights if "kernel" in w.name}
    assert {layer.layer: layer.values for layer in report.layers} == {name: np.unique(kernel).size for name, kernel in kernels.items()}
    assert kernels["logits"].size > 5 and np.unique(kernels["logits"]).size <= 5
    assert output.get_int_custom_property("clusters") == 7


def test_the_config_is_stored_as_json() -> None:
    component = Clusterer(
        model=Channel(type=Model), examples=Channel(type=Examples), transform_graph=Channel(type=TransformGraph), config=CONFIG
    )
    assert ClusteringConfig.from_json(component.exec_properties[keys.CONFIG]) == CONFIG
