"""The digits pipeline as a package, task by task on this machine, against LocalDagRunner: the same bytes.

Two whole runs, about six minutes of CPU: `.ci/run` asks for them with TFX_EDGE_PACKAGE_RUNS=1. TFX_EDGE_PACKAGE_ENGINE=docker and
TFX_EDGE_PACKAGE_IMAGE take containers of that image instead of processes; TensorFlow must be the same in both.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfx_edge.schemas import PackageRun

pytestmark = pytest.mark.skipif(
    os.environ.get("TFX_EDGE_PACKAGE_RUNS") != "1", reason="two whole runs of the digits pipeline; TFX_EDGE_PACKAGE_RUNS=1 runs them"
)
ENGINE = os.environ.get("TFX_EDGE_PACKAGE_ENGINE", "host")
IMAGE = os.environ.get("TFX_EDGE_PACKAGE_IMAGE", "localhost/tfx-edge:dev")
DETERMINISTIC = {**os.environ, "TF_DETERMINISTIC_OPS": "1"}


def tfx_edge(*arguments: str | Path) -> None:
    command = [Path(sys.executable).with_name("tfx-edge"), *arguments]
    done = subprocess.run(command, env=DETERMINISTIC, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """`tfx-edge demo`: LocalDagRunner. Its folder also has the data."""
    home = tmp_path_factory.mktemp("demo")
    tfx_edge("demo", "--home", home)
    return home / "digits"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def run(reference, root):
    """The package's first run; in a container the data are at /data and the pipeline's root is a volume's place, /minio/work."""
    package = root / "package.yaml"
    config = root / "environment.yaml"
    config.write_text("defaults: {cache: true, env: {TF_DETERMINISTIC_OPS: '1'}}\n")
    tfx_edge("compile", "tfx_edge.pipelines.digits:create_pipeline", "--image", IMAGE, "--config", config, "-o", package)
    return run_package(package, reference, root)


def run_package(package, reference, root):
    if ENGINE == "host":
        where = ["--param", f"data={reference / 'data'}", "--param", f"root={root / 'minio' / 'work'}"]
    else:
        where = ["--param", "data=/data", "--param", "root=/minio/work", "--volume", f"{reference / 'data'}:/data:ro"]
    before = set(root.glob("runs/*"))
    tfx_edge("run-package", package, "--root", root, "--engine", ENGINE, *where)
    (folder,) = set(root.glob("runs/*")) - before
    return PackageRun.from_json((folder / "run.json").read_text())


def exported(run):
    (model,) = run.tasks["tfliteexporter"].artifacts["model"]
    return (Path(model.path) / "Format-Serving" / "tflite").read_bytes()


def test_every_task_succeeds_and_the_model_is_blessed(run):
    assert {task.state for task in run.tasks.values()} == {"SUCCEEDED"}
    (blessing,) = run.tasks["edgevalidator"].artifacts["blessing"]
    assert blessing.metadata["blessed"] == 1


def test_what_is_pushed_is_what_was_exported(run, root):
    (pushed,) = (root / "minio" / "work" / "pushed").glob("*/tflite")
    assert pushed.read_bytes() == exported(run)


def test_the_model_has_the_bytes_of_local_dag_runners(run, reference):
    (model,) = (reference / "artifacts" / "TFLiteExporter" / "model").iterdir()
    assert exported(run) == (model / "Format-Serving" / "tflite").read_bytes()


def test_a_second_run_takes_what_is_unchanged(run, reference, root):
    """The step that looks at files itself runs again, and so its artifacts are new ones: KFP's cache knows them by number."""
    again = run_package(root / "package.yaml", reference, root)
    assert again.state == "SUCCEEDED" and exported(again) == exported(run)
