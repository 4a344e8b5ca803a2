"""What `schedules.yaml` wants, with its packages read and everything checked that can be without a server."""

import datetime
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tfx_edge.kubeflow.schedule.cron import six_fields
from tfx_edge.schemas import ConfigError, EdgeError
from tfx_edge.schemas.schedules import Schedule, Schedules, unquoted_star

_PYTHON = {
    "NUMBER_INTEGER": (int,),
    "NUMBER_DOUBLE": (int, float),
    "STRING": (str,),
    "BOOLEAN": (bool,),
    "LIST": (list,),
    "STRUCT": (dict,),
}


@dataclass(frozen=True)
class Declaration:
    """One schedule, ready for the server."""

    group: str
    schedule: Schedule
    package: Path
    package_digest: str  # sha256 of the package's bytes
    pipeline: str
    six: str | None  # the cron as KFP means it; None with an interval

    @property
    def name(self) -> str:
        return self.schedule.name

    @property
    def digest(self) -> str:
        """sha256 of all that a recurring run is made of; whether it is paused isn't part of it."""
        content = self.schedule.model_dump(mode="json", exclude={"enabled", "package", "cron"})
        content |= {"package": self.package_digest, "pipeline": self.pipeline, "cron": self.six}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def read_schedules(path: Path) -> Schedules:
    """Reads the file.

    Raises:
        EdgeError: it can't be read, isn't YAML, or doesn't fit the schema; the text names file, schedule and field.
    """
    try:
        text = path.read_text()
    except OSError as error:
        raise EdgeError(f"{path}: can't be read ({error.strerror}); name the file of the schedules with --file") from None
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        fix = "put quotes around a cron that begins with *" if unquoted_star(text) else "mend the YAML"
        raise EdgeError(f"{path}: isn't YAML ({' '.join(str(error).split())}); {fix}") from None
    if not isinstance(content, dict):
        raise EdgeError(f"{path}: got {type(content).__name__}; expected a mapping with the key schedules")
    entries = content.get("schedules")
    for i, entry in enumerate(entries if isinstance(entries, list) else ()):
        name = entry.get("name", "without name") if isinstance(entry, dict) else "no mapping"
        try:
            Schedule.model_validate(entry)
        except ConfigError as error:
            raise EdgeError(f"{path}: schedules[{i}] ({name}): {error}") from None
    try:
        return Schedules.model_validate(content)
    except ConfigError as error:
        raise EdgeError(f"{path}: {error}") from None


def declare(path: Path) -> tuple[Schedules, tuple[Declaration, ...]]:
    """Reads the file and the packages it names.

    Raises:
        EdgeError: as `read_schedules`; a package is missing or isn't one; a parameter is unknown, missing or of the wrong type.
    """
    schedules = read_schedules(path)
    declared = []
    for schedule in schedules.schedules:
        try:
            declared.append(_declare(schedules.group, schedule, path.parent / schedule.package))
        except EdgeError as error:
            raise EdgeError(f"{path}: {schedule.name}: {error}") from None
    return schedules, tuple(declared)


def _declare(group: str, schedule: Schedule, package: Path) -> Declaration:
    try:
        content = package.read_bytes()
    except OSError as error:
        raise EdgeError(f"package {package}: can't be read ({error.strerror}); make it with tfx-edge compile") from None
    spec = _pipeline_spec(package, content)
    _check_parameters(schedule.parameters, spec.get("root", {}).get("inputDefinitions", {}).get("parameters", {}))
    return Declaration(
        group=group,
        schedule=schedule,
        package=package,
        package_digest=hashlib.sha256(content).hexdigest(),
        pipeline=schedule.pipeline or spec["pipelineInfo"]["name"],
        six=None if schedule.cron is None else six_fields(schedule.cron),
    )


def _pipeline_spec(package: Path, content: bytes) -> dict[str, Any]:
    try:
        spec = next(iter(yaml.safe_load_all(content)), None)
    except yaml.YAMLError:
        spec = None
    if not isinstance(spec, dict) or not isinstance(spec.get("pipelineInfo"), dict) or "name" not in spec["pipelineInfo"]:
        raise EdgeError(
            f"package {package}: isn't a pipeline package; make it with tfx-edge compile, without --manifest or --target vertex"
        )
    return spec


def _check_parameters(given: dict[str, Any], inputs: dict[str, Any]) -> None:
    if unknown := sorted(given.keys() - inputs.keys()):
        raise EdgeError(f"parameters: the package has no input {', '.join(unknown)}; it has {', '.join(sorted(inputs)) or 'none'}")
    needed = {name for name, about in inputs.items() if "defaultValue" not in about and not about.get("isOptional")}
    if missing := sorted(needed - given.keys()):
        raise EdgeError(f"parameters: {', '.join(missing)} is missing and has no default; give it a value")
    for name, value in given.items():
        kind = inputs[name].get("parameterType", "STRING")
        types = _PYTHON.get(kind, (object,))
        if not isinstance(value, types) or (isinstance(value, bool) and kind != "BOOLEAN"):
            fix = "; put quotes around it" if kind == "STRING" or isinstance(value, (datetime.date, datetime.datetime)) else ""
            raise EdgeError(f"parameters.{name}: got {value!r}; the package's input is a {kind}{fix}")
