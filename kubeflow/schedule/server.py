"""The API server's resources as far as schedules need them, alike for kfp_server_api 2.0 and later, whose methods have other names."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import kfp_server_api as api

from tfx_edge.kubeflow.schedule.connection import Credentials, Patience, ServerError, connect
from tfx_edge.kubeflow.schedule.declaration import Declaration

# Kept in a recurring run's description, since the API has no labels for them: the server alone holds the state.
_MARK = re.compile(r"\[tfx-edge (?P<group>\S+)/(?P<name>\S+) declaration:(?P<digest>[0-9a-f]{64})\]")
_UNFINISHED = ("PENDING", "RUNNING", "CANCELING", "PAUSED")
_PAGE = 100


@dataclass(frozen=True)
class Recurring:
    """A recurring run on the server that this command made."""

    id: str
    group: str
    name: str
    digest: str
    enabled: bool
    pipeline_id: str
    version_id: str
    experiment_id: str
    cron: str | None
    interval: int | None  # seconds
    start: datetime | None
    end: datetime | None
    raw: Any  # the generated model


class Server:
    """One API server, as one namespace sees it."""

    def __init__(
        self, host: str, credentials: Credentials | None = None, *, namespace: str | None = None, patience: Patience | None = None
    ) -> None:
        credentials, patience = credentials or Credentials(), patience or Patience()
        self.host = host.rstrip("/")
        self.namespace = namespace
        self._safe = connect(host, credentials, patience, repeatable=True)
        self._once = connect(host, credentials, patience, repeatable=False)

    def recurring_runs(self) -> list[Recurring]:
        """All that carry our mark, oldest first."""
        call = _method(api.RecurringRunServiceApi(self._safe), "list_recurring_runs")
        found = [_recurring(run) for run in self._pages(call, "recurring_runs", sort_by="created_at asc", **self._scope())]
        return [run for run in found if run is not None]

    def create_recurring(self, declared: Declaration, pipeline_id: str, version_id: str, experiment_id: str) -> str:
        """Makes it, paused, and returns its id."""
        want = declared.schedule
        window = {"start_time": want.window.start, "end_time": want.window.end}
        if declared.six is not None:
            trigger = api.V2beta1Trigger(cron_schedule=api.V2beta1CronSchedule(cron=declared.six, **window))
        else:
            trigger = api.V2beta1Trigger(periodic_schedule=api.V2beta1PeriodicSchedule(interval_second=str(want.seconds), **window))
        mark = f"[tfx-edge {declared.group}/{declared.name} declaration:{declared.digest}]"
        body = api.V2beta1RecurringRun(
            display_name=declared.name,
            description=f"{want.description} {mark}".strip(),
            pipeline_version_reference=api.V2beta1PipelineVersionReference(pipeline_id=pipeline_id, pipeline_version_id=version_id),
            runtime_config=api.V2beta1RuntimeConfig(parameters=want.parameters, pipeline_root=want.pipeline_root),
            service_account=want.service_account,
            max_concurrency=str(want.concurrency),
            trigger=trigger,
            mode="DISABLE",
            no_catchup=not want.catch_up,
            experiment_id=experiment_id,
        )
        made = _method(api.RecurringRunServiceApi(self._once), "create_recurring_run")(body)
        return str(made.recurring_run_id)

    def enable(self, run_id: str) -> None:
        _method(api.RecurringRunServiceApi(self._safe), "enable_recurring_run")(run_id)

    def disable(self, run_id: str) -> None:
        _method(api.RecurringRunServiceApi(self._safe), "disable_recurring_run")(run_id)

    def delete(self, run_id: str) -> None:
        """Deletes a recurring run; KFP takes its unfinished runs along. One that is gone already is fine."""
        _unless_missing(lambda: _method(api.RecurringRunServiceApi(self._safe), "delete_recurring_run")(run_id))

    def unfinished_runs(self, recurring_id: str) -> list[str]:
        """Ids of the runs that a recurring run started and that haven't ended."""
        call = _method(api.RunServiceApi(self._safe), "list_runs")
        runs = self._pages(call, "runs", filter=_where("EQUALS", "recurring_run_id", recurring_id), **self._scope())
        return [run.run_id for run in runs if run.recurring_run_id == recurring_id and run.state in _UNFINISHED]

    def pipeline_id(self, name: str) -> str | None:
        call = _method(api.PipelineServiceApi(self._safe), "get_pipeline_by_name")
        found = _unless_missing(lambda: call(name, **self._scope()))
        return None if found is None else found.pipeline_id

    def create_pipeline(self, name: str) -> str:
        body = api.V2beta1Pipeline(display_name=name, namespace=self.namespace)
        return str(_method(api.PipelineServiceApi(self._once), "create_pipeline")(body).pipeline_id)

    def version_id(self, pipeline_id: str, package_digest: str) -> str | None:
        """The version that was uploaded from this very package, whatever its name."""
        call = _method(api.PipelineServiceApi(self._safe), "list_pipeline_versions")
        digest = f"sha256:{package_digest}"
        versions = self._pages(
            lambda **k: call(pipeline_id, **k), "pipeline_versions", filter=_where("IS_SUBSTRING", "description", digest)
        )
        return next((version.pipeline_version_id for version in versions if digest in (version.description or "")), None)

    def has_version(self, pipeline_id: str, version_id: str) -> bool:
        call = _method(api.PipelineServiceApi(self._safe), "get_pipeline_version")
        return _unless_missing(lambda: call(pipeline_id, version_id)) is not None

    def upload_version(self, declared: Declaration, pipeline_id: str, name: str) -> str:
        made = api.PipelineUploadServiceApi(self._once).upload_pipeline_version(
            str(declared.package), name=name, pipelineid=pipeline_id, description=f"Package sha256:{declared.package_digest}"
        )
        return str(made.pipeline_version_id)

    def experiment_id(self, name: str) -> str | None:
        call = _method(api.ExperimentServiceApi(self._safe), "list_experiments")
        found = self._pages(call, "experiments", filter=_where("EQUALS", "display_name", name), **self._scope())
        return next((experiment.experiment_id for experiment in found if experiment.display_name == name), None)

    def create_experiment(self, name: str) -> str:
        body = api.V2beta1Experiment(display_name=name, namespace=self.namespace)
        return str(_method(api.ExperimentServiceApi(self._once), "create_experiment")(body).experiment_id)

    def start_run(self, of: Recurring, display_name: str) -> str:
        """Starts one run now, with what the recurring run has; not tried twice, so that it never starts twice."""
        body = api.V2beta1Run(
            display_name=display_name,
            pipeline_version_reference=of.raw.pipeline_version_reference,
            runtime_config=of.raw.runtime_config,
            service_account=of.raw.service_account,
            experiment_id=of.experiment_id,
        )
        return str(_method(api.RunServiceApi(self._once), "create_run")(body).run_id)

    def _scope(self) -> dict[str, str]:
        return {} if self.namespace is None else {"namespace": self.namespace}

    def _pages(self, call: Callable[..., Any], field: str, **options: Any) -> Iterator[Any]:
        token = ""
        while True:
            page = call(page_size=_PAGE, **({"page_token": token} if token else {}), **options)
            yield from getattr(page, field) or ()
            token = page.next_page_token or ""
            if not token:
                return


def _method(service: Any, name: str) -> Callable[..., Any]:
    """`create_run` of RunServiceApi; kfp_server_api 2.1 and later call it `run_service_create_run`."""
    prefix = re.sub(r"(?<!^)(?=[A-Z])", "_", type(service).__name__.removesuffix("Api")).lower()
    method: Callable[..., Any] = getattr(service, name, None) or getattr(service, f"{prefix}_{name}")
    return method


def _where(operation: str, key: str, value: str) -> str:
    return json.dumps({"predicates": [{"operation": operation, "key": key, "stringValue": value}]})


def _unless_missing(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except ServerError as error:
        if error.status == 404:
            return None
        raise


def _recurring(run: Any) -> Recurring | None:
    mark = _MARK.search(run.description or "")
    if mark is None:
        return None
    reference, trigger = run.pipeline_version_reference, run.trigger
    cron = trigger.cron_schedule if trigger is not None else None
    periodic = trigger.periodic_schedule if trigger is not None else None
    when = cron or periodic
    return Recurring(
        id=run.recurring_run_id,
        group=mark["group"],
        name=mark["name"],
        digest=mark["digest"],
        enabled=run.status == "ENABLED",
        pipeline_id=reference.pipeline_id if reference is not None else "",
        version_id=reference.pipeline_version_id if reference is not None else "",
        experiment_id=run.experiment_id,
        cron=cron.cron if cron is not None else None,
        interval=int(periodic.interval_second) if periodic is not None else None,
        start=when.start_time if when is not None else None,
        end=when.end_time if when is not None else None,
        raw=run,
    )
