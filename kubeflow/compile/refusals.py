"""What can't be compiled or run, told with the component's name: before TFX compiles anything, but for secrets."""

import re
from collections.abc import Sequence
from typing import Any

from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.secrets import refuse_secret, refuse_secrets_within

# By its title KFP finds a type's schema; source: backend/src/v2/component and backend/src/v2/metadata of kubeflow/pipelines.
_TYPE_NAME = re.compile(r"[a-z][a-z0-9\-_]{2,20}[.][A-Z][a-zA-Z0-9\-_]{2,49}")

_RUNTIME_PARAMETER = re.compile(r'"RuntimeParameter\\*".*?"name\\*": *\\*"(?P<name>[^"\\]+)')


def refuse_shape(pipeline: Any, nodes: Sequence[Any], title: str) -> None:
    """Checks what no target takes, and TFX compiles to something else, or fails at without a word.

    Args:
        pipeline: of TFX.
        nodes: its components, and the exit handler.
        title: of the function that made it.

    Raises:
        EdgeError: there are no components, one is a pipeline or comes behind one that isn't there, or has a RuntimeParameter within a text.
    """
    from tfx.orchestration.pipeline import Pipeline

    if not pipeline.components:
        raise EdgeError(f"{title} gave a pipeline without components; expected one at least")
    for node in nodes:
        if isinstance(node, Pipeline):
            raise EdgeError(f"component {node.id!r}: a pipeline within the pipeline; hand over its components instead")
        missing = sorted({other.id for other in node.upstream_nodes} - {other.id for other in nodes})
        if missing:
            raise EdgeError(f"component {node.id!r}: runs after {missing[0]!r}, which isn't in the pipeline; add it to the components")
        for name, value in node.exec_properties.items():
            inside = _runtime_parameter_within(value)
            if inside:
                raise EdgeError(
                    f"component {node.id!r}: {name} has {inside!r}, a number or RuntimeParameter, within a text or structure, "
                    "where only an argument annotated as str can be an input; annotate it so, or give it a value by "
                    f"--arg {inside}=..."
                )


def _runtime_parameter_within(value: Any) -> str | None:
    """The name of a RuntimeParameter that is in a text, where TFX writes its JSON, or in a structure."""
    if isinstance(value, str):
        found = _RUNTIME_PARAMETER.search(value)
        return found["name"] if found else None
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    names = (part.name if type(part).__name__ == "RuntimeParameter" else _runtime_parameter_within(part) for part in parts)
    return next((name for name in names if name), None)


def refuse(pipeline: Any) -> None:
    """Checks every component of a TFX pipeline for what open-source Kubeflow Pipelines can't run.

    Raises:
        EdgeError: a resolver, an InfraValidator, code from a file, an artifact type, a condition or an execution property that KFP can't
            do.
    """
    for node in pipeline.components:
        _refuse_kind(node)
        for channel in [*node.inputs.values(), *node.outputs.values()]:
            _refuse_type(node, channel)
        _refuse_condition(node, pipeline.dsl_context_registry)
        _refuse_properties(node)


def _refuse_kind(node: Any) -> None:
    from tfx.dsl.components.common.resolver import Resolver

    if isinstance(node, Resolver):
        raise EdgeError(
            f"component {node.id!r}: a resolver, which open-source KFP doesn't run; take an Importer whose uri is an input of the pipeline"
        )
    if any(kind.__name__ == "InfraValidator" for kind in type(node).__mro__):
        raise EdgeError(f"component {node.id!r}: an InfraValidator, which TFX doesn't compile; name targets in EdgeValidator's gate")
    if node.exec_properties.get("module_file") and getattr(node, "_pip_dependencies", None):
        raise EdgeError(
            f"component {node.id!r}: a module_file, which TFX packs on this machine; name the code by import path, such as "
            "run_fn='package.module.run_fn', and have it in the image"
        )


def _refuse_type(node: Any, channel: Any) -> None:
    title = channel.type.TYPE_NAME
    # A standard type's name is short (Model), and compiled as tfx.Model.
    if "." in title and not _TYPE_NAME.fullmatch(title):
        raise EdgeError(f"component {node.id!r}: KFP takes no artifact type {title!r}; name it as package.Type")
    if "." in title and channel.type.PROPERTIES:
        first = min(channel.type.PROPERTIES)
        raise EdgeError(
            f"component {node.id!r}: artifact type {title!r} has PROPERTIES ({first}), which TFX compiles for its own types alone; leave "
            "them out, and set custom properties"
        )


def _refuse_condition(node: Any, registry: Any) -> None:
    from tfx.dsl.components.common.importer import Importer
    from tfx.dsl.experimental.conditionals import conditional
    from tfx.orchestration.kubeflow.v2.compiler_utils import placeholder_to_cel
    from tfx.types import channel_utils

    predicates = conditional.get_predicates(node, registry)
    if predicates and isinstance(node, Importer):
        raise EdgeError(f"component {node.id!r}: an importer in a Cond, which KFP doesn't run; take it out of the Cond")
    for predicate in predicates:
        keys = dict.fromkeys(channel_utils.get_dependent_channels(predicate), "x")
        try:
            cel = placeholder_to_cel(channel_utils.encode_placeholder_with_channels(predicate, keys.__getitem__))
        except (NotImplementedError, ValueError) as error:
            raise EdgeError(
                f"component {node.id!r}: KFP can't evaluate its condition ({' '.join(str(error).split())}); compare a property of an "
                "artifact, such as future()[0].custom_property('blessed') == 1"
            ) from error
        # TFX puts quotes around a text as it is.
        if re.sub(r"'[^'\\\n]*'", "", cel).strip("() ").count("'") or "\\" in cel or "\n" in cel:
            raise EdgeError(f"component {node.id!r}: its condition has a text with a quote, backslash or new line; compare another text")


def _refuse_properties(node: Any) -> None:
    from tfx.dsl.placeholder.placeholder import Placeholder
    from tfx.types import channel_utils, standard_artifacts

    for name, value in node.exec_properties.items():
        if not isinstance(value, Placeholder):
            continue
        try:
            channel = channel_utils.unwrap_simple_channel_placeholder(value)
        except ValueError as error:
            raise EdgeError(f"component {node.id!r}: {name} is more than another component's output; give it future()[0].value") from error
        kinds = (standard_artifacts.String, standard_artifacts.Integer, standard_artifacts.Boolean)
        if channel.type not in kinds:
            raise EdgeError(
                f"component {node.id!r}: {name} is a {channel.type.TYPE_NAME} output, which TFX doesn't compile; hand it on as String"
            )


def refuse_secrets(spec: dict[str, Any]) -> None:
    """Checks the arguments of compiled containers, and the tasks' parameters.

    Args:
        spec: a PipelineSpec.

    Raises:
        EdgeError: an argument, by the pipeline's own Beam arguments for one, or an execution property is a secret by its name or look.
    """
    for graph in [spec["root"], *spec["components"].values()]:
        for task, body in graph.get("dag", {}).get("tasks", {}).items():
            for name, source in body.get("inputs", {}).get("parameters", {}).items():
                try:
                    refuse_secrets_within(name, source.get("runtimeValue", {}).get("constant"), "the component's secret_env")
                except ValueError as error:
                    raise EdgeError(f"task {task!r}: {error}") from None
    for label, executor in spec["deploymentSpec"]["executors"].items():
        for argument in executor.get("container", {}).get("args", ()):
            option, equals, value = argument.partition("=")
            if option.startswith("--") and equals:
                try:
                    refuse_secret(option, value, "the component's secret_env")
                except ValueError as error:
                    raise EdgeError(f"executor {label!r}: {error}") from None
