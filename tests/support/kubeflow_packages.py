"""Small pipelines to compile. Their components do nothing: only what they say of themselves counts."""

from typing import Any

from tfx.dsl.component.experimental.annotations import InputArtifact, OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.common.importer import Importer
from tfx.dsl.components.common.resolver import Resolver
from tfx.dsl.experimental.conditionals.conditional import Cond
from tfx.dsl.input_resolution.strategies.latest_blessed_model_strategy import LatestBlessedModelStrategy
from tfx.orchestration.data_types import RuntimeParameter
from tfx.orchestration.kubeflow.decorators import FinalStatusStr, exit_handler
from tfx.orchestration.pipeline import Pipeline
from tfx.types import standard_artifacts
from tfx.types.channel import Channel


@component
def Say(model: OutputArtifact[standard_artifacts.Model], text: Parameter[str] = "", times: Parameter[int] = 1) -> None:
    model.set_string_custom_property("said", text * times)


@component
def Hear(model: InputArtifact[standard_artifacts.Model]) -> None:
    del model


@exit_handler
def Mourn(status: Parameter[str], where: Parameter[str] = "") -> None:
    del status, where


class _OfOwn(standard_artifacts.Examples):
    TYPE_NAME = "kubeflow_packages.Own"


class _Short(standard_artifacts.Model):
    TYPE_NAME = "Short"


@component
def Typed(own: OutputArtifact[_OfOwn]) -> None:
    del own


@component
def ShortTyped(own: OutputArtifact[_Short]) -> None:
    del own


@component
def Configure(model: OutputArtifact[standard_artifacts.Model], config: Parameter[dict[str, Any]]) -> None:
    del model, config


def _pipeline(*components: Any, **options: Any) -> Pipeline:
    return Pipeline(pipeline_name="small", pipeline_root="", components=list(components), **options)


def says(text: str, times: int = 2, greeting: str = "hello") -> Pipeline:
    """`text` becomes an input, `times` and `greeting` don't unless they are asked for."""
    return _pipeline(Say(text=f"{greeting}, {text}/{text}", times=times))


def runtime_parameter() -> Pipeline:
    return _pipeline(Say(text="a", times=RuntimeParameter(name="times", ptype=int, default=3)))


def imported(uri: str) -> Pipeline:
    importer = Importer(source_uri=uri, artifact_type=standard_artifacts.Model, custom_properties={"n": 2}).with_id("Model.Importer")
    return _pipeline(importer, Hear(model=importer.outputs["result"]))


def imported_below(folder: str) -> Pipeline:
    return imported(f"{folder}/model")


def conditional() -> Pipeline:
    say = Say(text="a")
    with Cond(say.outputs["model"].future()[0].custom_property("blessed") == 1):
        hear = Hear(model=say.outputs["model"])
    return _pipeline(say, hear)


def conditional_on_a_value() -> Pipeline:
    say = Say(text="a")
    with Cond(say.outputs["model"].future()[0].value == 1):
        hear = Hear(model=say.outputs["model"])
    return _pipeline(say, hear)


def resolved() -> Pipeline:
    resolver = Resolver(
        strategy_class=LatestBlessedModelStrategy,
        model=Channel(type=standard_artifacts.Model),
        model_blessing=Channel(type=standard_artifacts.ModelBlessing),
    ).with_id("Latest")
    return _pipeline(resolver)


def colliding() -> Pipeline:
    return _pipeline(Say(text="a").with_id("Say.a"), Say(text="b").with_id("say_a"))


def named(name: str) -> Pipeline:
    return Pipeline(pipeline_name=name, pipeline_root="", components=[Say(text="a")])


def identified(name: str) -> Pipeline:
    return _pipeline(Say(text="a").with_id(name))


def shouted(name: str) -> Pipeline:
    return _pipeline(Say(text=name.upper()))


def cut(name: str) -> Pipeline:
    return _pipeline(Say(text=name[2:]))


def decided(flag: str) -> Pipeline:
    return _pipeline(Say(text="a" if flag == "yes" else "b"))


def counted(n: int) -> Pipeline:
    return _pipeline(Say(text="three" if n == 3 else "other"))


def unused(name: str) -> Pipeline:
    del name
    return _pipeline(Say(text="a"))


def rooted(root: str) -> Pipeline:
    """As LocalDagRunner needs it."""
    return Pipeline(pipeline_name="small", pipeline_root=f"{root}/artifacts", components=[Say(text="a")])


def numbered(n: int) -> Pipeline:
    return _pipeline(Say(text=f"n is {n}"))


def structured(rate: float) -> Pipeline:
    return _pipeline(Configure(config={"rate": rate}))


def optional(times: int | None) -> Pipeline:
    return _pipeline(Say(text="a", times=times))


def configured(config: dict[str, str]) -> Pipeline:
    return _pipeline(Configure(config=config))


def with_literal_key() -> Pipeline:
    return _pipeline(Say(text="AKIA" + "A" * 16))


def with_literal_password() -> Pipeline:
    return _pipeline(Configure(config={"store": {"password": "hunter2"}}))


def empty() -> Pipeline:
    return _pipeline()


def behind_nothing() -> Pipeline:
    say, later = Say(text="a").with_id("first"), Say(text="b").with_id("later")
    later.add_upstream_node(say)
    return _pipeline(later)


def nested() -> Pipeline:
    inner = Pipeline(pipeline_name="inner", components=[Say(text="a")])
    return Pipeline(pipeline_name="outer", pipeline_root="", components=[inner])


def typed() -> Pipeline:
    return _pipeline(Typed())


def short_typed() -> Pipeline:
    return _pipeline(ShortTyped())


def twice() -> Pipeline:
    return _pipeline(Say(text="a"), Say(text="b"))


def fails(kind: str = "RuntimeError") -> Pipeline:
    raise {"RuntimeError": RuntimeError, "AssertionError": AssertionError, "NameError": NameError, "SystemExit": SystemExit}[kind](
        "one\ntwo"
    )


def with_exit_handler(where: str) -> tuple[Pipeline, Any]:
    return _pipeline(Say(text=where)), Mourn(status=FinalStatusStr(), where=where)


def no_pipeline() -> int:
    return 1


@component
def Fails(model: OutputArtifact[standard_artifacts.Model], text: Parameter[str] = "", times: Parameter[int] = 1) -> None:
    del model, text, times
    raise ZeroDivisionError("as asked")


SEEN: list[Any] = []


@component
def Inspect(examples: InputArtifact[standard_artifacts.Examples]) -> None:
    SEEN[:] = [examples]
