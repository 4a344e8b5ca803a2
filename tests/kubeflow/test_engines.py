"""Containers through a real engine. Skipped where none answers; DOCKER_HOST says where it is."""

import os
import shutil
import subprocess
import sys
import threading
import time

import pytest
from plain_packages import art, step, write

from tfx_edge.kubeflow.local_run.run import Options, run_package
from tfx_edge.schemas import EdgeError, PackageRun

# Any image with a shell; the first that the engine has.
IMAGES = (os.environ.get("TFX_EDGE_TEST_IMAGE", ""), "docker.io/library/debian:trixie-slim", "debian:trixie-slim", "busybox:latest")


@pytest.fixture(scope="module")
def client():
    docker = pytest.importorskip("docker")
    try:
        client = docker.from_env(timeout=10)
        client.ping()
    except docker.errors.DockerException as error:
        pytest.skip(f"no container engine answers: {error}")
    return client


@pytest.fixture(scope="module")
def image(client):
    import docker

    for name in filter(None, IMAGES):
        try:
            client.images.get(name)
        except docker.errors.ImageNotFound:
            continue
        return name
    pytest.skip(f"the engine has none of {', '.join(filter(None, IMAGES))}; name one with a shell in TFX_EDGE_TEST_IMAGE")


@pytest.fixture
def run(tmp_path, image):
    def run_steps(steps, *, platform=None, **options):
        package = write(tmp_path / "package.yaml", {name: with_image(made, image) for name, made in steps.items()}, platform=platform)
        return run_package(package, Options(tmp_path / "root", **options))[0]

    return run_steps


def with_image(made, image):
    return {**made, "executor": {"container": {**made["executor"]["container"], "image": image}}}


def log(record, task):
    with open(record.tasks[task].log) as file:
        return file.read()


def wait_for_log(folder, task, text):
    deadline = time.monotonic() + 120
    while not any(text in path.read_text() for path in folder.glob(f"root/runs/*/logs/{task}.log")):
        assert time.monotonic() < deadline, f"{task} doesn't say {text!r}"
        time.sleep(0.1)


def containers(client, task):
    return client.containers.list(all=True, filters={"label": f"tfx-edge.task={task}"})


def test_each_task_has_a_container_of_its_own_and_they_share_minio(run, client):
    record = run(
        {
            "make-it": step("touch /tmp/mine; printf hello > {{$.outputs.artifacts['data'].path}}", makes=("data",)),
            "use-it": step(
                "[ ! -e /tmp/mine ]; touch $HOME/x; echo $(cat {{$.inputs.artifacts['data'].path}}) {{$.inputs.artifacts['data'].path}}",
                artifacts={"data": art("make-it", "data")},
            ),
        }
    )
    assert record.state == "SUCCEEDED"
    assert log(record, "use-it").startswith("hello /minio/mlpipeline/v2/artifacts/plain/")
    assert containers(client, "make-it") == containers(client, "use-it") == []


def test_files_belong_to_the_caller_by_default(run):
    record = run({"own": step("id -u; printf x > {{$.outputs.artifacts['data'].path}}", makes=("data",))})
    (data,) = record.tasks["own"].artifacts["data"]
    assert os.stat(data.path).st_uid == os.getuid()


def test_any_user_can_write_its_outputs(run):
    record = run({"other": step("id -u; printf x > {{$.outputs.artifacts['data'].path}}", makes=("data",))}, user="12345:0")
    assert record.state == "SUCCEEDED" and log(record, "other") == "12345\n"


def test_a_container_that_fails_fails_the_run_and_is_removed(run, client):
    record = run({"bad-one": step("echo broken; exit 7"), "behind": step("true", dependentTasks=["bad-one"])})
    assert record.state == "FAILED" and record.tasks["bad-one"].exit_status == 7
    assert record.tasks["behind"].state == "SKIPPED"
    assert log(record, "bad-one") == "broken\n"
    assert containers(client, "bad-one") == []


def test_volume_claims_secrets_and_binds_are_where_they_are_asked_for(run, tmp_path):
    (tmp_path / "root" / "secrets" / "key").mkdir(parents=True)
    (tmp_path / "root" / "secrets" / "key" / "pem").write_text("k")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "x").write_text("d")
    platform = {
        "mount": {
            "pvcMount": [{"constant": "models", "mountPath": "/models"}],
            "secretAsVolume": [{"secretName": "key", "mountPath": "/key"}],
        }
    }
    record = run(
        {"mount": step("echo $(cat /key/pem /data/x); echo pushed > /models/m")},
        platform=platform,
        volumes=(f"{tmp_path / 'data'}:/data:ro",),
    )
    assert log(record, "mount") == "kd\n"
    assert (tmp_path / "root" / "volumes" / "models" / "m").read_text() == "pushed\n"


def test_a_command_that_the_image_hasnt_got_fails_its_task(run, client):
    record = run({"odd-one": step("", command=["no-such-program"])})
    assert record.state == "FAILED" and "no-such-program" in record.tasks["odd-one"].reason
    assert containers(client, "odd-one") == []


def test_ctrl_c_removes_the_container(tmp_path, image, client):
    package = write(tmp_path / "package.yaml", {"long-one": with_image(step("echo started; sleep 600"), image)})
    command = [sys.executable, "-c", "from tfx_edge.cli import main; main()", "run-package", str(package), "--root", str(tmp_path / "root")]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.DEVNULL)
    wait_for_log(tmp_path, "long-one", "started")
    process.terminate()
    assert process.wait(60) == 1
    assert containers(client, "long-one") == []
    (path,) = (tmp_path / "root" / "runs").glob("*/run.json")
    assert PackageRun.from_json(path.read_text()).state == "CANCELED"


@pytest.mark.skipif(shutil.which("podman") is None, reason="ends an engine of its own, which podman gives")
def test_an_engine_that_ends_fails_the_run_and_is_told(run, tmp_path, client, monkeypatch):
    socket = f"unix://{tmp_path}/engine.sock"
    service = subprocess.Popen(["podman", "system", "service", "--time=0", socket])
    while not (tmp_path / "engine.sock").exists():
        assert service.poll() is None
        time.sleep(0.1)
    monkeypatch.setenv("DOCKER_HOST", socket)
    ending = threading.Thread(target=lambda: (wait_for_log(tmp_path, "long-one", "started"), service.kill()))
    ending.start()
    try:
        record = run({"long-one": step("echo started; sleep 600")})
    finally:
        ending.join()
        service.wait()
        for container in containers(client, "long-one"):
            container.remove(force=True)
    assert record.state == "FAILED" and record.tasks["long-one"].reason == "the container can't be watched: the engine no longer answers"


def test_an_image_that_isnt_to_be_had_is_refused_before_the_run(tmp_path, client):
    package = write(tmp_path / "package.yaml", {"a": step("true", image="localhost:1/no/such:image")})
    with pytest.raises(EdgeError, match="image localhost:1/no/such:image: neither here nor to be pulled"):
        run_package(package, Options(tmp_path / "root"))


def test_without_an_engine_one_line_says_what_to_set(tmp_path, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none")
    with pytest.raises(
        EdgeError, match="no engine answers at unix://.*; start Docker or podman's service and set DOCKER_HOST, or use --engine host"
    ):
        run_package(write(tmp_path / "package.yaml", {"a": step("true")}), Options(tmp_path / "root"))
