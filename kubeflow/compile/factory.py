"""Finds the function that makes a pipeline, and calls it."""

import contextlib
import importlib
import inspect
import os
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from tfx_edge.kubeflow.compile.inputs import own_inputs, refuse_stand_ins, stand_in
from tfx_edge.kubeflow.compile.refusals import refuse_shape
from tfx_edge.schemas import EdgeError, KubeflowConfig, Parameter
from tfx_edge.schemas.kubeflow import ParameterType
from tfx_edge.schemas.secrets import refuse_secrets_within

_TYPES: dict[Any, ParameterType] = {int: "NUMBER_INTEGER", float: "NUMBER_DOUBLE"}
_PTYPES = {"NUMBER_INTEGER": int, "NUMBER_DOUBLE": float}


@dataclass(frozen=True)
class Made:
    """What the function made.

    Attributes:
        pipeline: the TFX pipeline.
        exit_handler: a component to run when all others are done, however they ended; or None.
        inputs: of the pipeline: arguments that became inputs, and the pipeline's own RuntimeParameters.
    """

    pipeline: Any
    exit_handler: Any
    inputs: Mapping[str, Parameter]


def load(target: str) -> Callable[..., Any]:
    """The function that a text like `package.module:function` names.

    Raises:
        EdgeError: there is none.
    """
    module_name, colon, name = target.partition(":")
    if not (module_name and colon and name):
        raise EdgeError(f"{target!r}: expected MODULE:FUNCTION, such as tfx_edge.pipelines.digits:create_pipeline")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise EdgeError(f"{target!r}: module {module_name} can't be imported ({error}); run where it can, or set PYTHONPATH") from error
    except Exception as error:  # the user's own code, whose failure is the user's to mend
        raise EdgeError(f"{target!r}: module {module_name} can't be imported ({told(error)}); mend it") from error
    function = getattr(module, name, None)
    if not callable(function):
        there = ", ".join(sorted(n for n, v in vars(module).items() if inspect.isfunction(v))) or "none"
        raise EdgeError(f"{target!r}: no function {name} in module {module_name}; its functions: {there}")
    return function  # type: ignore[no-any-return]  # callable() doesn't tell of what


def make(function: Callable[..., Any], config: KubeflowConfig, arguments: Mapping[str, str]) -> Made:
    """Calls the function; every argument that has neither a default nor a value becomes an input of the pipeline, and so does every
    one that the config's `parameters` name.

    Args:
        function: gives a TFX pipeline, or a pair of it and an exit handler.
        config: with arguments and parameters.
        arguments: more arguments, as texts from a command line, which win over the config's.

    Raises:
        EdgeError: an argument that the function hasn't, or with a value that isn't of its type; an input that the pipeline hasn't;
            the function failed or gave no pipeline.
    """
    from tfx.orchestration.pipeline import Pipeline

    title, known = getattr(function, "__qualname__", str(function)), _arguments(function)
    for name in [*arguments, *config.arguments]:
        if name not in known:
            raise EdgeError(f"argument {name!r}: {title} takes {', '.join(known) or 'none'}; name one of these")
    try:
        refuse_secrets_within("--arg", dict(arguments), "a component's secret_env")  # the config's own were checked where it was made
    except ValueError as error:
        raise EdgeError(f"argument {error}") from None
    values = {name: _value(known[name], value) for name, value in {**config.arguments, **arguments}.items()}
    inputs: dict[str, Parameter] = {}
    for name, parameter in known.items():
        asked = config.parameters.get(name)
        if name not in values and (asked is not None or parameter.default is parameter.empty):
            kind = _without_none(parameter.annotation)
            if kind is bool:
                raise EdgeError(f"argument {name!r} of {title} is a bool, which a run can't set; give it a value by --arg {name}=true")
            inputs[name] = asked or Parameter(type=_TYPES.get(kind, "STRING"))
            values[name] = _input(name, inputs[name])
    try:
        made = function(**values)
    except EdgeError:  # of a config that the function makes: it names what is to be mended
        raise
    except (Exception, SystemExit) as error:  # the user's own code, whose failure is the user's to mend
        stand_ins = (
            f"; it got stand-ins for {', '.join(inputs)}, whose values only a run knows; --arg NAME=VALUE gives an argument a value"
            if inputs
            else ""
        )
        raise EdgeError(f"{title} failed: {told(error)}{stand_ins}") from error
    finally:
        _remove_folders(inputs)
    pipeline, handler = made if isinstance(made, tuple) and len(made) == 2 else (made, None)
    if not isinstance(pipeline, Pipeline):
        raise EdgeError(f"{title} gave {type(made).__name__}; expected a tfx Pipeline, or a pair of a Pipeline and an exit handler")
    nodes = [*pipeline.components, *([] if handler is None else [handler])]
    refuse_stand_ins([pipeline.pipeline_info.pipeline_name, *(node.id for node in nodes)])
    refuse_shape(pipeline, nodes, title)
    inputs.update(own_inputs(nodes, inputs, config.parameters))
    unknown = sorted(set(config.parameters) - set(inputs) - set(known))
    if unknown:
        has = ", ".join(sorted(inputs)) or "none"
        raise EdgeError(f"KubeflowConfig.parameters has {unknown[0]!r}; the pipeline's inputs are {has}; name one of these")
    return Made(pipeline, handler, inputs)


def _arguments(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(function, eval_str=True).parameters.values()
    except (NameError, SyntaxError, TypeError, ValueError) as error:
        raise EdgeError(f"{function!r}: its arguments can't be told ({told(error)}); mend its annotations") from error
    return {p.name: p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _without_none(annotation: Any) -> Any:
    """`int` of `int | None`; else the annotation itself."""
    parts = [part for part in typing.get_args(annotation) if part is not type(None)]
    return parts[0] if len(parts) == 1 and type(None) in typing.get_args(annotation) else annotation


def told(error: BaseException) -> str:
    """The kind and text of an exception in one line."""
    return ": ".join(filter(None, [type(error).__name__, " ".join(str(error).split())]))


def _remove_folders(inputs: Iterable[str]) -> None:
    """TFX's sqlite_metadata_connection_config makes the folder of its file, which has a stand-in's name where the folder is an input."""
    for name in inputs:
        for folder, _, _ in os.walk(stand_in(name), topdown=False):
            with contextlib.suppress(OSError):  # what isn't empty is somebody's
                os.rmdir(folder)


def _input(name: str, parameter: Parameter) -> Any:
    if parameter.type not in _PTYPES:
        return stand_in(name)
    from tfx.orchestration.data_types import RuntimeParameter

    return RuntimeParameter(name=name, ptype=_PTYPES[parameter.type], default=parameter.default)


def _value(parameter: inspect.Parameter, value: Any) -> Any:
    """A value from a file or a text from a command line as the argument's annotation says; a config's fields make the config."""
    if parameter.annotation is parameter.empty:
        return value
    try:
        adapter = TypeAdapter(parameter.annotation)
    except (PydanticSchemaGenerationError, PydanticUserError):  # a class that pydantic knows nothing of
        return value
    try:
        if isinstance(value, str) and value.lstrip().startswith(("{", "[")) and parameter.annotation is not str:
            return adapter.validate_json(value)
        return adapter.validate_python(value)
    except ValidationError as error:
        wanted = inspect.formatannotation(parameter.annotation)
        raise EdgeError(f"argument {parameter.name!r}: got {value!r}; expected {wanted}: {error.errors()[0]['msg']}") from None
