"""Every component of the digits pipeline behind the entry point, started as KFP's launcher starts it."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from kfp_backend import Backend

from tfx_edge.pipelines.digits.data import write_examples


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Backend:
    """The compiled pipeline, all of it run: a task takes what the one before it put out."""
    root = tmp_path_factory.mktemp("backend")
    package, data = root / "package.yaml", root / "data"
    write_examples(data)
    command = [Path(sys.executable).with_name("tfx-edge"), "compile", "tfx_edge.pipelines.digits:create_pipeline"]
    command += ["--image", "localhost/tfx-edge:dev", "--arg", "epochs=2", "-o", package]
    subprocess.run(command, check=True, capture_output=True)
    spec = next(yaml.safe_load_all(package.read_text()))
    backend = Backend(root, spec, {"root": str(root / "work"), "data": str(data)})
    for name in backend.order():
        done = backend.run(name)
        assert done.returncode == 0, f"{name}: {done.stderr[-3000:]}"
    return backend


def test_every_output_is_where_the_launcher_looks_for_it_and_is_named_as_it_named_it(backend: Backend) -> None:
    for name in backend.order():
        given = backend.executor_input(name)["outputs"]["artifacts"]
        for key, artifact in backend.made[name].items():
            assert artifact["uri"] == given[key]["artifacts"][0]["uri"], f"{name}.{key}"
            if key != "executor-logs":
                path = backend.path(artifact["uri"])
                assert path.is_dir() and (any(path.iterdir()) or key in ("model_run", "pushed_model")), f"{name}.{key}"


def test_the_drivers_findings_reach_the_examples(backend: Backend) -> None:
    found = backend.made["importexamplegen"]["examples"]["metadata"]
    assert "input_fingerprint" in found and sorted(yaml.safe_load(found["split_names"])) == ["eval", "train"]


def test_the_gate_decides_and_the_pusher_obeys(backend: Backend) -> None:
    blessed = backend.made["edgevalidator"]["blessing"]["metadata"]["blessed"]
    assert blessed in (0, 1) and bool(list((backend.root / "work" / "pushed").glob("*/tflite"))) == (blessed == 1)
    assert backend.made["pusher"]["pushed_model"]["metadata"]["pushed"] == blessed


def test_the_blessing_names_its_models_by_the_backends_numbers(backend: Backend) -> None:
    inputs = backend.executor_input("edgevalidator")["inputs"]["artifacts"]
    blessing = backend.made["edgevalidator"]["blessing"]["metadata"]
    assert blessing["current_model_id"] == inputs["model"]["artifacts"][0]["name"]
    assert blessing["baseline_model_id"] == inputs["baseline_model"]["artifacts"][0]["name"]


def test_a_retried_task_starts_anew(backend: Backend) -> None:
    before = backend.made["schemagen"]["schema"]
    half = backend.path(before["uri"]) / "half"
    half.write_text("x")
    assert backend.run("schemagen").returncode == 0
    assert not half.exists() and backend.made["schemagen"]["schema"] == before
