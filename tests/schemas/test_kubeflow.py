"""Environments: what can't be meant is refused, and no secret gets in."""

from pathlib import Path
from typing import Any

import pytest

from tfx_edge.kubeflow import package
from tfx_edge.schemas import (
    ComponentConfig,
    ConfigError,
    DirectBeam,
    EdgeError,
    KubeflowConfig,
    Parameter,
    Resources,
    SecretEnv,
    SecretVolume,
    Toleration,
    Volume,
)
from tfx_edge.schemas.kubeflow import gigabytes


def _secret(env: str) -> SecretEnv:
    return SecretEnv(secret="store", key="key", env=env)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", "hunter2"),
        ("API_KEY", "hunter2"),
        ("AWS_SECRET_ACCESS_KEY", "hunter2"),
        ("URL", "https://me:hunter2@host/"),
        ("X", "AKIA" + "A" * 16),
    ],
)
def test_a_secret_is_refused_without_being_repeated(name: str, value: str) -> None:
    for make in (
        lambda: ComponentConfig(env={name: value}),
        lambda: DirectBeam(extra=(f"--{name}={value}",)),
        lambda: KubeflowConfig(defaults={"env": {"A": "1", name: value}}),
        lambda: KubeflowConfig(arguments={name: value}),
        lambda: KubeflowConfig(arguments={"custom_config": {"inner": [{name: value}]}}),
        lambda: KubeflowConfig(parameters={name: Parameter(default=value)}),
    ):
        with pytest.raises(ConfigError, match=f"'(--)?{name}' looks like a secret.*secret_env") as error:
            make()
        assert value not in str(error.value)


@pytest.mark.parametrize("name", ["TOKEN_FILE", "SECRET_NAME", "CREDENTIALS_PATH", "TF_CPP_MIN_LOG_LEVEL"])
def test_a_reference_to_a_secret_is_none(name: str) -> None:
    assert ComponentConfig(env={name: "/run/secrets/x"}).env == {name: "/run/secrets/x"}


@pytest.mark.parametrize("name", ["label_key", "key", "tokenizer", "TOKENIZERS_PARALLELISM", "max_tokens", "token_ids", "tokens_column"])
def test_a_key_of_a_feature_or_a_token_of_text_is_no_secret(name: str) -> None:
    assert KubeflowConfig(arguments={name: "digit"}).arguments == {name: "digit"}


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
        (lambda: ComponentConfig(env={"1BAD-NAME": "x"}), "'1BAD-NAME'; string should match"),
        (lambda: ComponentConfig(env={"A": "1"}, secret_env=(_secret("A"),)), "variable 'A' is there twice in env and secret_env"),
        (lambda: ComponentConfig(secret_env=(_secret("A"), _secret("A"))), "variable 'A' is there twice"),
        (
            lambda: ComponentConfig(volumes=(Volume(claim="a", path="/m"),), secret_volumes=(SecretVolume(secret="b", path="/m/"),)),
            "path '/m' is there twice in volumes and secret_volumes",
        ),
        (
            lambda: KubeflowConfig(
                defaults=ComponentConfig(secret_env=(_secret("A"),)), components={"Say": ComponentConfig(env={"A": "1"})}
            ),
            "components.Say with defaults: .*variable 'A' is there twice",
        ),
        (lambda: Volume(claim="Not Valid", path="/m"), "claim: got 'Not Valid'"),
        (lambda: Volume(claim="a", path="/m:ro"), "path: got '/m:ro'"),
        (lambda: SecretVolume(secret="UPPER", path="/m"), "secret: got 'UPPER'"),
        (lambda: SecretEnv(secret="a" * 254, key="k", env="A"), "secret: got"),
        (lambda: SecretEnv(secret="a", key="a/b", env="A"), "key: got 'a/b'"),
    ],
)
def test_what_cannot_be_meant_is_refused(make: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        make()


def test_a_key_that_a_file_has_twice_is_refused_where_it_stands_and_a_merged_one_isnt(tmp_path: Path) -> None:
    file = tmp_path / "env.yaml"
    file.write_text("components:\n  A: &a {env: &env {X: '1'}}\n  B: {<<: *a, env: {<<: *env, X: '2'}}\n")
    assert package.read_config(file).component("B").env == {"X": "2"}
    file.write_text("image: a\ndefaults: {env: {X: hunter2,\n  X: hunter3}}\n")
    with pytest.raises(EdgeError, match="env.yaml: isn't YAML: line 3: key 'X' is there twice; keep one$"):
        package.read_config(file)


def test_a_component_takes_from_the_defaults_what_it_leaves_out() -> None:
    defaults = ComponentConfig(image="a", env={"X": "1", "Y": "1"}, cache=True)
    merged = ComponentConfig(env={"Y": "2"}, cache=False).over(defaults)
    assert (merged.image, merged.env, merged.cache) == ("a", {"X": "1", "Y": "2"}, False)


@pytest.mark.parametrize(("memory", "expected"), [("1000000000", 1), ("1500M", 1.5), ("2Ti", 2199.023255552)])
def test_memory_is_in_gigabytes(memory: str, expected: float) -> None:
    assert gigabytes(memory) == pytest.approx(expected)
