"""Every component of the digits pipeline behind the entry point, started as KFP's launcher starts it."""

import os

import pytest
import yaml
from kfp_backend import Backend
from tiny_digits import write_examples

from tfx_edge.kubeflow.compile.compiler import compile_pipeline
from tfx_edge.schemas import KubeflowConfig

# no TensorBoard, pushed elsewhere, nothing analysed, no statistics of Transform's own
MAY_BE_EMPTY = ("model_run", "pushed_model", "updated_analyzer_cache", "pre_transform_schema", "pre_transform_stats")
MAY_BE_EMPTY += ("post_transform_anomalies", "post_transform_schema", "post_transform_stats")

pytestmark = pytest.mark.skipif(
    os.environ.get("TFX_EDGE_PACKAGE_ENGINE") != "host", reason="a process for each component; TFX_EDGE_PACKAGE_ENGINE=host asks for them"
)


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """The compiled pipeline, all of it run: a task takes what the one before it put out."""
    root = tmp_path_factory.mktemp("backend")
    write_examples(root / "data")
    package = compile_pipeline("tiny_digits:create_pipeline", KubeflowConfig(), image="localhost/tfx-edge:dev")
    backend = Backend(root, next(yaml.safe_load_all(package)), {"root": str(root / "work"), "data": str(root / "data")})
    for name in backend.order():
        done = backend.run(name)
        assert done.returncode == 0, f"{name}: {done.stderr[-3000:]}"
    return backend


def test_the_pipeline_has_a_task_for_each_component_and_each_scheme_has_tasks(backend: Backend) -> None:
    assert len(backend.order()) == 12
    schemes = {artifact["uri"].split(":")[0] for made in backend.made.values() for artifact in made.values()}
    assert schemes == {"minio", "s3", "gs"}


def test_every_output_is_where_the_launcher_looks_for_it_and_is_named_as_it_named_it(backend: Backend) -> None:
    for name in backend.order():
        given = backend.executor_input(name)["outputs"]["artifacts"]
        for key, artifact in backend.made[name].items():
            assert artifact["uri"] == given[key]["artifacts"][0]["uri"], f"{name}.{key}"
            if key != "executor-logs":
                path = backend.path(artifact["uri"])
                assert path.is_dir() and (any(path.iterdir()) or key in MAY_BE_EMPTY), f"{name}.{key}"


def test_no_property_names_a_place_of_this_machine(backend: Backend) -> None:
    for name, made in backend.made.items():
        for key, artifact in made.items():
            found = {key: value for key, value in artifact["metadata"].items() if str(backend.root) in str(value)}
            assert set(found) <= {"pushed_destination"}, f"{name}.{key}: {found}"


def test_the_drivers_findings_reach_the_examples(backend: Backend) -> None:
    found = backend.made["importexamplegen"]["examples"]["metadata"]
    assert "input_fingerprint" in found and sorted(yaml.safe_load(found["split_names"])) == ["eval", "train"]


def test_the_gate_blesses_and_the_pusher_pushes(backend: Backend) -> None:
    assert backend.made["edgevalidator"]["blessing"]["metadata"]["blessed"] == 1
    assert backend.made["pusher"]["pushed_model"]["metadata"]["pushed"] == 1
    [pushed] = (backend.root / "work" / "pushed").glob("*/tflite")
    assert pushed.read_bytes() == (backend.path(backend.made["tfliteexporter"]["model"]["uri"]) / "Format-Serving/tflite").read_bytes()


def test_the_blessing_names_its_models_by_the_backends_numbers_and_uris(backend: Backend) -> None:
    inputs = backend.executor_input("edgevalidator")["inputs"]["artifacts"]
    blessing = backend.made["edgevalidator"]["blessing"]["metadata"]
    for key, input_key in (("current_model", "model"), ("baseline_model", "baseline_model")):
        [model] = inputs[input_key]["artifacts"]
        assert (blessing[f"{key}_id"], blessing[key]) == (model["name"], model["uri"])
