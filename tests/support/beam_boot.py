"""What Beam's `boot` program does in a worker's container, which only Beam's own images have: fetch what was staged, install it, begin.

After sdks/python/container/boot.go of apache/beam. To be named as the `--container_executable` of a worker pool; packages go into a
folder of their own, in front of what this Python has.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import grpc
from apache_beam.portability.api import (
    beam_artifact_api_pb2,
    beam_artifact_api_pb2_grpc,
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    beam_runner_api_pb2,
)
from google.protobuf import json_format


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("id", "logging_endpoint", "artifact_endpoint", "provision_endpoint", "control_endpoint"):
        parser.add_argument(f"--{name}")
    given, worker = parser.parse_known_args()[0], tempfile.mkdtemp(prefix="worker-")
    metadata = [("worker_id", given.id)]
    provisions = beam_provision_api_pb2_grpc.ProvisionServiceStub(grpc.insecure_channel(given.provision_endpoint))
    info = provisions.GetProvisionInfo(beam_provision_api_pb2.GetProvisionInfoRequest(), metadata=metadata).info
    artifacts = beam_artifact_api_pb2_grpc.ArtifactRetrievalServiceStub(grpc.insecure_channel(given.artifact_endpoint))
    for artifact in info.dependencies:
        name = beam_runner_api_pb2.ArtifactStagingToRolePayload.FromString(artifact.role_payload).staged_name
        with Path(worker, name).open("wb") as file:
            for part in artifacts.GetArtifact(beam_artifact_api_pb2.GetArtifactRequest(artifact=artifact), metadata=metadata):
                file.write(part.data)
    packages = Path(worker, "extra_packages.txt")
    for package in packages.read_text().split() if packages.exists() else ():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", f"{worker}/packages"]
        subprocess.run([*install, f"{worker}/{package}"], check=True)
    environment = {
        **os.environ,
        "PYTHONPATH": f"{worker}/packages:{os.environ.get('PYTHONPATH', '')}",
        "WORKER_ID": given.id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "LOGGING_API_SERVICE_DESCRIPTOR": f'url: "{given.logging_endpoint}"',
        "CONTROL_API_SERVICE_DESCRIPTOR": f'url: "{given.control_endpoint}"',
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
        "SEMI_PERSISTENT_DIRECTORY": worker,
    }
    os.chdir(worker)
    os.execve(sys.executable, [sys.executable, "-m", "apache_beam.runners.worker.sdk_worker_main"], environment)


if __name__ == "__main__":
    main()
