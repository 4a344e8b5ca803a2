"""Environments: what can't be meant is refused, and no secret gets in."""

from typing import Any

import pytest

from tfx_edge.schemas import ComponentConfig, ConfigError, DirectBeam, KubeflowConfig, Parameter, Resources, Toleration
from tfx_edge.schemas.kubeflow import gigabytes


@pytest.mark.parametrize(
    ("name", "value"),
    [("DB_PASSWORD", "x"), ("api-key", "x"), ("AWS_SECRET_ACCESS_KEY", "x"), ("URL", "https://me:pw@host/"), ("X", "AKIA" + "A" * 16)],
)
def test_a_secret_is_refused_without_being_repeated(name: str, value: str) -> None:
    with pytest.raises(ConfigError, match="looks like a secret.*secret_env") as error:
        ComponentConfig(env={name: value})
    assert f"'{value}'" not in str(error.value).split(";")[-2] or value == "x"
    with pytest.raises(ConfigError, match="looks like a secret"):
        DirectBeam(extra=(f"--{name}={value}",))


@pytest.mark.parametrize("name", ["TOKEN_FILE", "SECRET_NAME", "CREDENTIALS_PATH", "TF_CPP_MIN_LOG_LEVEL"])
def test_a_reference_to_a_secret_is_none(name: str) -> None:
    assert ComponentConfig(env={name: "/run/secrets/x"}).env == {name: "/run/secrets/x"}


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: Resources(cpu_request=2, cpu_limit=1), "cpu_request 2.0 is above cpu_limit 1.0"),
        (lambda: Resources(memory_request="2Gi", memory_limit="2G"), "memory_request 2Gi is above memory_limit 2G"),
        (lambda: Resources(memory_limit="2 gigabytes"), "memory_limit"),
        (lambda: Toleration(key="a", operator="Exists", value="b"), "leave the value out"),
        (lambda: Toleration(), "toleration without key"),
        (lambda: Parameter(type="NUMBER_INTEGER", default="3"), "default '3' with type NUMBER_INTEGER"),
        (lambda: Parameter(type="NUMBER_INTEGER", default=True), r"default: got True; input should be a valid integer, or a valid number"),
        (lambda: KubeflowConfig(arguments={"a": 1}, parameters={"a": Parameter()}), "'a' is in arguments and in parameters"),
        (lambda: DirectBeam(extra=("runner=x",)), "isn't a Beam argument"),
        (lambda: KubeflowConfig(pipeline_root="/tmp/x"), "pipeline_root"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_a_component_takes_from_the_defaults_what_it_leaves_out() -> None:
    defaults = ComponentConfig(image="a", env={"X": "1", "Y": "1"}, cache=True)
    merged = ComponentConfig(env={"Y": "2"}, cache=False).over(defaults)
    assert (merged.image, merged.env, merged.cache) == ("a", {"X": "1", "Y": "2"}, False)


@pytest.mark.parametrize(("memory", "expected"), [("1000000000", 1), ("1500M", 1.5), ("2Ti", 2199.023255552)])
def test_memory_is_in_gigabytes(memory: str, expected: float) -> None:
    assert gigabytes(memory) == pytest.approx(expected)
