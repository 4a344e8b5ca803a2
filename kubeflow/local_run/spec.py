"""What a package says, typed: the part of KFP's PipelineSpec (schema 2.1.0) that a run reads.

Source: api/v2alpha1/pipeline_spec.proto of kubeflow/pipelines, in its JSON form.
"""

from typing import Any

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

ROOT = "root"
EXIT_STRATEGY = "ALL_UPSTREAM_TASKS_COMPLETED"


class _Spec(BaseModel):
    # Fields that a run doesn't read are of no concern here; what a run would have to honour and can't, plan.py refuses.
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel, populate_by_name=True)


class ArtifactType(_Spec):
    """One of the three; what the compiler of this package writes is the title."""

    schema_title: str = ""
    instance_schema: str = ""
    schema_version: str = ""


class ParameterSpec(_Spec):
    """A parameter in a component's interface."""

    parameter_type: str
    default_value: Any = None
    is_optional: bool = False


class ArtifactSpec(_Spec):
    """An artifact in a component's interface."""

    artifact_type: ArtifactType = ArtifactType()
    metadata: dict[str, Any] = Field(default_factory=dict)


class Interface(_Spec):
    """Inputs, or outputs, of a component."""

    parameters: dict[str, ParameterSpec] = Field(default_factory=dict)
    artifacts: dict[str, ArtifactSpec] = Field(default_factory=dict)


class RuntimeValue(_Spec):
    """A constant, or by the name of an input."""

    constant: Any = None
    runtime_parameter: str = ""


class TaskOutputParameter(_Spec):
    """A parameter that a task of the same graph puts out."""

    producer_task: str
    output_parameter_key: str


class TaskOutputArtifact(_Spec):
    """An artifact that a task of the same graph puts out."""

    producer_task: str
    output_artifact_key: str


class FinalStatus(_Spec):
    """How a task ended: an exit handler's input."""

    producer_task: str


class ParameterSource(_Spec):
    """Where a task's parameter comes from: one of the four."""

    runtime_value: RuntimeValue | None = None
    component_input_parameter: str | None = None
    task_output_parameter: TaskOutputParameter | None = None
    task_final_status: FinalStatus | None = None
    parameter_expression_selector: str = ""


class ArtifactSource(_Spec):
    """Where a task's artifact comes from: one of the two."""

    component_input_artifact: str | None = None
    task_output_artifact: TaskOutputArtifact | None = None


class TaskInputs(_Spec):
    """All inputs of a task, by the key of its component."""

    parameters: dict[str, ParameterSource] = Field(default_factory=dict)
    artifacts: dict[str, ArtifactSource] = Field(default_factory=dict)


class TriggerPolicy(_Spec):
    """When a task runs: a CEL condition, and a strategy."""

    condition: str = ""
    strategy: str = ""


class RetryPolicy(_Spec):
    """How a failed container is tried again; durations as the proto's JSON has them, `30s`. What is absent is 0, as KFP takes it."""

    max_retry_count: int = 0
    backoff_duration: str = "0s"
    backoff_factor: float = 0.0
    backoff_max_duration: str = "0s"


class CachingOptions(_Spec):
    """Whether results of an equal execution are taken."""

    enable_cache: bool = False
    cache_key: str = ""


class ComponentRef(_Spec):
    """The component that a task is of."""

    name: str


class TaskInfo(_Spec):
    """The task's name for people."""

    name: str = ""


class Task(_Spec):
    """One task of a graph."""

    component_ref: ComponentRef
    task_info: TaskInfo = TaskInfo()
    inputs: TaskInputs = TaskInputs()
    dependent_tasks: tuple[str, ...] = ()
    caching_options: CachingOptions = CachingOptions()
    trigger_policy: TriggerPolicy = TriggerPolicy()
    retry_policy: RetryPolicy = RetryPolicy()
    parameter_iterator: dict[str, Any] | None = None
    artifact_iterator: dict[str, Any] | None = None

    @property
    def is_exit_handler(self) -> bool:
        """Runs when the tasks it depends on have ended, however they ended."""
        return self.trigger_policy.strategy == EXIT_STRATEGY

    def upstream(self) -> list[str]:
        """The tasks of the same graph it waits for: named ones, and those whose outputs it takes; sorted."""
        parameters = [source.task_output_parameter for source in self.inputs.parameters.values()]
        artifacts = [source.task_output_artifact for source in self.inputs.artifacts.values()]
        status = [source.task_final_status for source in self.inputs.parameters.values()]
        producers = {source.producer_task for source in [*parameters, *artifacts, *status] if source is not None}
        return sorted(producers | set(self.dependent_tasks))


class ParameterSelector(_Spec):
    """A parameter of a task inside a graph."""

    producer_subtask: str
    output_parameter_key: str


class OneOfParameters(_Spec):
    """The first of them whose task succeeded."""

    parameter_selectors: tuple[ParameterSelector, ...] = ()


class DagParameter(_Spec):
    """Which inner parameter a graph puts out: one of the two."""

    value_from_parameter: ParameterSelector | None = None
    value_from_oneof: OneOfParameters | None = None

    def selectors(self) -> tuple[ParameterSelector, ...]:
        """The candidates, in their order."""
        if self.value_from_parameter is not None:
            return (self.value_from_parameter,)
        return self.value_from_oneof.parameter_selectors if self.value_from_oneof is not None else ()


class ArtifactSelector(_Spec):
    """An artifact of a task inside a graph."""

    producer_subtask: str
    output_artifact_key: str


class DagArtifact(_Spec):
    """Which inner artifact a graph puts out: the first whose task succeeded."""

    artifact_selectors: tuple[ArtifactSelector, ...] = ()


class DagOutputs(_Spec):
    """What a graph puts out."""

    parameters: dict[str, DagParameter] = Field(default_factory=dict)
    artifacts: dict[str, DagArtifact] = Field(default_factory=dict)

    def producers(self) -> set[str]:
        """The tasks inside whose outputs these are, or may be."""
        parameters = {selector.producer_subtask for parameter in self.parameters.values() for selector in parameter.selectors()}
        return parameters | {chosen.producer_subtask for artifact in self.artifacts.values() for chosen in artifact.artifact_selectors}


class Dag(_Spec):
    """A graph of tasks."""

    tasks: dict[str, Task] = Field(default_factory=dict)
    outputs: DagOutputs = DagOutputs()


class Component(_Spec):
    """An interface, and behind it a graph or an executor."""

    input_definitions: Interface = Interface()
    output_definitions: Interface = Interface()
    executor_label: str = ""
    dag: Dag | None = None


class EnvVar(_Spec):
    """A variable in a container's environment."""

    name: str
    value: str = ""


class Container(_Spec):
    """What a task runs."""

    image: str
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    env: tuple[EnvVar, ...] = ()


class Importer(_Spec):
    """An artifact that exists already."""

    artifact_uri: RuntimeValue = RuntimeValue()
    type_schema: ArtifactType = ArtifactType()
    metadata: dict[str, Any] = Field(default_factory=dict)
    reimport: bool = False


class Executor(_Spec):
    """One of KFP's kinds; this runner knows container and importer, and the names of the others."""

    container: Container | None = None
    importer: Importer | None = None
    resolver: dict[str, Any] | None = None
    custom_job: dict[str, Any] | None = None


class DeploymentSpec(_Spec):
    """Executors by label."""

    executors: dict[str, Executor] = Field(default_factory=dict)


class PipelineInfo(_Spec):
    """The pipeline's name, part of every artifact's address."""

    name: str


class Pipeline(_Spec):
    """The whole package's first document."""

    pipeline_info: PipelineInfo
    root: Component
    components: dict[str, Component] = Field(default_factory=dict)
    deployment_spec: DeploymentSpec = DeploymentSpec()

    def component(self, task: Task) -> Component:
        """The component that a task is of."""
        return self.components[task.component_ref.name]

    def executor(self, component: Component) -> Executor:
        """What is behind a component that isn't a graph."""
        return self.deployment_spec.executors[component.executor_label]
