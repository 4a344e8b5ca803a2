"""The pipeline's inputs: arguments of the function that makes the pipeline, to which only a run gives values.

The function is called with a stand-in for each. A stand-in is plain text, so that the function may put it into a path or a longer
text; where it ends up in the compiled specification it becomes a reference to the input.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tfx_edge.schemas import EdgeError, Parameter
from tfx_edge.schemas.kubeflow import ParameterType

_STAND_IN = re.compile(r"__tfx_edge_input_([A-Za-z]\w*?)__(?![A-Za-z0-9_])")
_CHANGED = re.compile(r"(?i)tfx[_-]edge[_-]input[_-]([a-z0-9_-]*)")
_CHANNEL = "pipelinechannel--"


def stand_in(name: str) -> str:
    """The text that stands for an input: no slash, no quote, nothing that JSON or a path would change."""
    return f"__tfx_edge_input_{name}__"


def names_in(value: Any) -> list[str]:
    """The inputs whose stand-ins are anywhere in a text or structure, in order."""
    if isinstance(value, str):
        return _STAND_IN.findall(value)
    if isinstance(value, dict):
        return [name for pair in value.items() for part in pair for name in names_in(part)]
    if isinstance(value, (list, tuple)):
        return [name for part in value for name in names_in(part)]
    return []


def own_inputs(nodes: Iterable[Any], known: Mapping[str, Parameter], asked: Mapping[str, Parameter]) -> dict[str, Parameter]:
    """The RuntimeParameters that the pipeline's own code made, with their defaults and descriptions, which TFX drops.

    Args:
        nodes: components of a TFX pipeline.
        known: inputs that are known already.
        asked: defaults and descriptions by the environment, which win.

    Raises:
        EdgeError: two of one name that differ, or another type than the environment says.
    """
    from tfx.orchestration.data_types import RuntimeParameter

    types: dict[Any, ParameterType] = {int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE", str: "STRING", None: "STRING"}
    found: dict[str, Parameter] = {}
    for node in nodes:
        for value in node.exec_properties.values():
            if not isinstance(value, RuntimeParameter) or value.name in known:
                continue
            here = Parameter(type=types[value.ptype], default=value.default, description=value.description or "")
            if found.setdefault(value.name, here) != here:
                raise EdgeError(
                    f"component {node.id!r}: RuntimeParameter {value.name!r} is {here!r}, elsewhere {found[value.name]!r}; make it one"
                )
    for name, own in found.items():
        wanted = asked.get(name)
        if wanted is not None and wanted.type != own.type:
            raise EdgeError(f"KubeflowConfig.parameters.{name}: type {wanted.type}; the pipeline's RuntimeParameter is {own.type}")
    return {name: asked.get(name, own) for name, own in found.items()}


def refuse_stand_ins(value: Any) -> None:
    """Refuses inputs where only a value can be, and what is left of a stand-in that the function changed.

    Raises:
        EdgeError: there is one in a text or structure.
    """
    left = names_in(value)
    if left:
        raise EdgeError(f"input {left[0]!r} shapes the pipeline itself, such as a name or an image; give it a value by --arg {left[0]}=...")
    changed = _CHANGED.search(str(value))
    if changed:
        name = changed[1].strip("_-").lower()
        raise EdgeError(
            f"input {name!r} was changed as a text ({changed[0]!r}), but only a run knows its value; put it in whole, or give it a value "
            f"by --arg {name}=..."
        )


def placeholder(name: str) -> str:
    """What the entry point replaces by an input's value; its own form, because KFP replaces its own within the executor input as text, so
    that a quote in a value would break the JSON, and in a random order.
    """
    return f"{{{{tfx_edge.inputs['{name}']}}}}"


def kfp_placeholder(name: str) -> str:
    """What KFP and Vertex AI replace by an input's value, for containers without our entry point."""
    return f"{{{{$.inputs.parameters['{_CHANNEL}{name}']}}}}"


def connect(
    task: dict[str, Any], component: dict[str, Any], title: str, *, placeholder: Callable[[str], str] = placeholder
) -> Iterator[str]:
    """Makes references of the stand-ins in a task's parameters, and tells all inputs that it then takes.

    Where a parameter is a stand-in alone it becomes the input itself. Where it contains some it becomes a text with
    placeholders, and there is for each a further parameter of the component.

    Args:
        task: a PipelineTaskSpec; changed in place.
        component: its ComponentSpec; changed in place.
        title: what to call the task in an error.
        placeholder: what stands for an input in a text.

    Raises:
        EdgeError: an importer whose URI is more than an input; an input that was made a path of this machine.
    """
    parameters = task.get("inputs", {}).get("parameters", {})
    for key, source in list(parameters.items()):
        if "componentInputParameter" in source:
            yield source["componentInputParameter"]
            continue
        constant = source.get("runtimeValue", {}).get("constant")
        found = names_in(constant)
        if not found:
            continue
        if os.path.abspath(stand_in(found[0])) in constant:
            raise EdgeError(
                f"{title}: {key} has input {found[0]!r} as a path below this machine's working directory; the function that makes the "
                "pipeline has to leave it as it is"
            )
        if constant == stand_in(found[0]):
            parameters[key] = {"componentInputParameter": found[0]}
            yield found[0]
            continue
        if key == "uri":
            raise EdgeError(
                f"{title}: its uri has input {found[0]!r} in a longer text, which KFP's importer can't; make the whole uri an input"
            )
        source["runtimeValue"]["constant"] = _STAND_IN.sub(lambda match: placeholder(match[1]), constant)
        for name in found:
            parameters[_CHANNEL + name] = {"componentInputParameter": name}
            component["inputDefinitions"]["parameters"][_CHANNEL + name] = {"parameterType": "STRING"}
            yield name
