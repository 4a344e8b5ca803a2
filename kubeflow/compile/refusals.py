"""What open-source Kubeflow Pipelines can't run, told with the component's name before anything is compiled."""

import re
from typing import Any

from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.secrets import refuse_secret

# By its title KFP finds a type's schema; source: backend/src/v2/component and backend/src/v2/metadata of kubeflow/pipelines.
_TYPE_NAME = re.compile(r"[a-z][a-z0-9\-_]{2,20}[.][A-Z][a-zA-Z0-9\-_]{2,49}")


def refuse(pipeline: Any) -> None:
    """Checks every component of a TFX pipeline.

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
        if isinstance(value, str) and '"RuntimeParameter"' in value:
            raise EdgeError(
                f"component {node.id!r}: a RuntimeParameter in {name}; make it an argument without a default of the function that makes "
                "the pipeline, which becomes an input, or hand it to the component on its own"
            )
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


def refuse_secrets(executors: dict[str, Any]) -> None:
    """Checks the arguments of compiled containers.

    Args:
        executors: of a deploymentSpec.

    Raises:
        EdgeError: an argument, by the pipeline's own Beam arguments for one, is a secret by its name or look.
    """
    for label, executor in executors.items():
        for argument in executor.get("container", {}).get("args", ()):
            option, equals, value = argument.partition("=")
            if option.startswith("--") and equals:
                try:
                    refuse_secret(option, value, "the component's secret_env")
                except ValueError as error:
                    raise EdgeError(f"executor {label!r}: {error}") from None
