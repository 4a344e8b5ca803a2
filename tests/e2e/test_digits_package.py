"""The digits pipeline as a package, task by task, beside LocalDagRunner: the same bytes.

Two whole runs at once, so `.ci/run` asks for them: TFX_EDGE_PACKAGE_ENGINE=host takes processes of this environment, docker
containers of the image that TFX_EDGE_PACKAGE_IMAGE names, for LocalDagRunner too, since TensorFlow must be the same in both.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tfx_edge.pipelines.digits.data import write_examples
from tfx_edge.schemas import PackageRun

ENGINE = os.environ.get("TFX_EDGE_PACKAGE_ENGINE")
IMAGE = os.environ.get("TFX_EDGE_PACKAGE_IMAGE", "localhost/tfx-edge:dev")
DETERMINISTIC = {"TF_DETERMINISTIC_OPS": "1"}

pytestmark = pytest.mark.skipif(
    ENGINE is None, reason="two whole runs of the digits pipeline; TFX_EDGE_PACKAGE_ENGINE=host or docker asks for them"
)


def tfx_edge(*arguments: str | Path) -> None:
    command = [Path(sys.executable).with_name("tfx-edge"), *arguments]
    done = subprocess.run(command, env={**os.environ, **DETERMINISTIC}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def demo(home: Path) -> None:
    """`tfx-edge demo`: LocalDagRunner."""
    if ENGINE == "host":
        tfx_edge("demo", "--home", home)
        return
    import docker

    docker.from_env(timeout=3_600).containers.run(
        IMAGE,
        ["tfx-edge", "demo", "--home", "/demo"],
        environment=DETERMINISTIC,
        user=f"{os.getuid()}:{os.getgid()}",
        volumes=[f"{home}:/demo"],
        remove=True,
    )


def compile_package(root: Path) -> Path:
    package, config = root / "package.yaml", root / "environment.yaml"
    # The records don't change: that is what cache says of ImportExampleGen.
    config.write_text("defaults: {env: {TF_DETERMINISTIC_OPS: '1'}}\ncomponents: {ImportExampleGen: {cache: true}}\n")
    tfx_edge("compile", "tfx_edge.pipelines.digits:create_pipeline", "--image", IMAGE, "--config", config, "-o", package)
    return package


def run_package(package: Path, root: Path, data: Path) -> PackageRun:
    """In a container the data are at /data and the pipeline's root is a volume's place, /minio/work."""
    if ENGINE == "host":
        where = ["--param", f"data={data}", "--param", f"root={root / 'minio' / 'work'}"]
    else:
        where = ["--param", "data=/data", "--param", "root=/minio/work", "--volume", f"{data}:/data:ro"]
    before = set(root.glob("runs/*/run.json"))
    tfx_edge("run-package", package, "--root", root, "--engine", ENGINE, *where)
    (record,) = set(root.glob("runs/*/run.json")) - before
    return PackageRun.from_json(record.read_text())


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    """The folder that LocalDagRunner works in."""
    return tmp_path_factory.mktemp("demo") / "digits"


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tmp_path_factory.mktemp("package")


@pytest.fixture(scope="module")
def run(reference, root):
    """Both runs, of the same records."""
    write_examples(reference / "data")
    with ThreadPoolExecutor() as pool:
        local = pool.submit(demo, reference.parent)
        record = run_package(compile_package(root), root, reference / "data")
        local.result()
    return record


def exported(run):
    (model,) = run.tasks["tfliteexporter"].artifacts["model"]
    return (Path(model.path) / "Format-Serving" / "tflite").read_bytes()


def test_every_task_succeeds_and_the_model_is_blessed(run):
    assert {task.state for task in run.tasks.values()} == {"SUCCEEDED"}
    (blessing,) = run.tasks["edgevalidator"].artifacts["blessing"]
    assert (blessing.metadata["blessed"], blessing.metadata["component_id"]) == (1, "EdgeValidator")


def test_what_is_pushed_is_what_was_exported(run, root):
    (pushed,) = (root / "minio" / "work" / "pushed").glob("*/tflite")
    assert pushed.read_bytes() == exported(run)


def test_the_model_has_the_bytes_of_local_dag_runners(run, reference):
    (model,) = (reference / "artifacts" / "TFLiteExporter" / "model").iterdir()
    assert exported(run) == (model / "Format-Serving" / "tflite").read_bytes()


def test_the_manifest_names_the_run_as_far_as_kfp_tells_of_it(run):
    (model,) = run.tasks["tfliteexporter"].artifacts["model"]
    told = json.loads((Path(model.path) / "edge" / "manifest.json").read_text())["run"]
    assert (told["pipeline"], told["component"]) == ("digits", "TFLiteExporter")


def test_a_second_run_takes_everything_from_the_cache(run, reference, root):
    again = run_package(root / "package.yaml", root, reference / "data")
    assert {task.state for task in again.tasks.values()} == {"CACHED"} and exported(again) == exported(run)
