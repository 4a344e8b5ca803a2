"""Target profiles are data that fits what it speaks of, and a budget that can't be measured is refused where it is written."""

import importlib
import json
from pathlib import Path

import pytest
from ai_edge_litert import schema_py_generated as schema

from tfx_edge.schemas import ConfigError
from tfx_edge.schemas.target import BUDGETS, FOLDER, OpRules, Target, TargetProfile, profile_names

NAMES = profile_names()
OPERATORS = {name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int)}
DTYPES = {name.lower() for name, code in vars(schema.TensorType).items() if isinstance(code, int)}
MEASURABLE = {
    "litert-cpu": set(),
    "tflm": {"max_arena_bytes", "max_parity_steps", "max_parity_error"},
    "edgetpu": {"max_unsupported_ops", "min_npu_share"},
    "gpu-delegate": {"max_unsupported_ops", "min_npu_share"},
    **{n: {"max_unsupported_ops", "min_npu_share"} for n in NAMES if n.startswith("npu-")},
    **{
        f"ethos-u{n}": {"max_unsupported_ops", "min_npu_share", "max_sram_bytes", "max_dram_bytes", "max_flash_bytes", "max_npu_time_ms"}
        for n in (55, 65, 85)
    },
}
RULES = {name: rules for name in NAMES if (rules := Target(profile=name).resolve().rules) is not None}


def test_every_profile_of_the_design_is_there() -> None:
    assert set(NAMES) == set(MEASURABLE)
    assert {"npu-qualcomm", "npu-mediatek", "npu-google-tensor"} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_profile_is_named_as_its_file_and_describes_itself(name: str) -> None:
    profile = Target(profile=name).resolve()
    assert profile.name == name and profile.description
    assert profile.source or profile.tool == "litert"
    assert TargetProfile.from_json(profile.to_json()) == profile


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_budget_is_taken_by_the_profiles_that_can_measure_it_alone(name: str, budget: str) -> None:
    if budget in MEASURABLE[name]:
        assert Target(profile=name, **{budget: 1}).budgets() == {budget: 1}
    else:
        with pytest.raises(ConfigError, match=rf"Target: {budget} with profile '{name}', which can't measure it; it has [\w, ]+$"):
            Target(profile=name, **{budget: 1})


@pytest.mark.parametrize("name", RULES)
def test_rules_speak_of_operators_options_and_types_that_there_are(name: str) -> None:
    rules = RULES[name]
    assert set(rules.ops) <= OPERATORS
    for operator, rule in rules.ops.items():
        assert {*rules.dtypes, *rule.dtypes} <= DTYPES
        for option in rule.options:
            fields = vars(options_of(operator)())
            assert option in fields, f"{operator} has {', '.join(fields)}"


def options_of(operator: str) -> type:
    """The class of an operator's options in LiteRT's schema; some operators share one."""
    shared = {"AVERAGE_POOL_2D": "Pool2D", "MAX_POOL_2D": "Pool2D", "CONV_2D": "Conv2D", "DEPTHWISE_CONV_2D": "DepthwiseConv2D"}
    title = shared.get(operator, "".join(part.capitalize() for part in operator.split("_")))
    return getattr(schema, f"{title}OptionsT")


@pytest.mark.parametrize("name", [n for n in NAMES if n.startswith("npu-")])
def test_the_vendors_chips_are_those_that_the_compiler_knows(name: str) -> None:
    profile = Target(profile=name).resolve()
    target = importlib.import_module(f"ai_edge_litert.aot.vendors.{profile.vendor}.target")
    assert {*profile.accelerators, "ALL"} == {chip.value for chip in target.SocModel}
    backend = Path(target.__file__).with_name(f"{profile.vendor}_backend.py").read_text()
    assert f"import {profile.kit} " in backend


MISTAKES = {
    "an unknown profile": (
        lambda: Target(profile="tpu"),
        r"Target\.profile: got 'tpu'; expected one of edgetpu, .*, or the path of a profile",
    ),
    "an accelerator of another profile": (
        lambda: Target(profile="ethos-u55", accelerator="ethos-u65-256"),
        r"Target: accelerator 'ethos-u65-256' with profile 'ethos-u55'; give one of ethos-u55-128, ",
    ),
    "an accelerator where there is none": (
        lambda: Target(profile="tflm", accelerator="m4"),
        "Target: accelerator 'm4' with profile 'tflm'; it has none, leave it out",
    ),
    "Vela's settings elsewhere": (
        lambda: Target(profile="edgetpu", memory_mode="Shared_Sram"),
        "Target: memory_mode with profile 'edgetpu'; only Vela's profiles, ethos-u\\*, have one",
    ),
    "rules without any": (lambda: TargetProfile(name="mine", tool="rules"), "TargetProfile: 'mine' with tool 'rules' lacks rules; give it"),
    "rules without an operator": (
        lambda: OpRules(device="Chip", dtypes=("int8",), ops={}),
        "OpRules: the rules of 'Chip' have no operator in ops, so nothing would run there; name those that it takes",
    ),
    "no chip": (
        lambda: TargetProfile(name="mine", tool="aot", vendor="v", kit="k"),
        "TargetProfile: 'mine' with tool 'aot' lacks accelerators",
    ),
    "a share above one": (lambda: Target(profile="edgetpu", min_npu_share=2), r"Target\.min_npu_share: got 2; "),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_line(mistake: str) -> None:
    make, text = MISTAKES[mistake]
    with pytest.raises(ConfigError, match=f"^{text}") as caught:
        make()
    assert len(str(caught.value).splitlines()) == 1


def test_a_profile_of_ones_own_is_read_once_and_goes_with_the_config(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    profile = TargetProfile(name="mine", tool="rules", rules=OpRules(device="Chip", dtypes=("int8",), ops={"ADD": {}}))
    path.write_text(profile.to_json())
    target = Target(profile=str(path), max_unsupported_ops=2)
    path.unlink()
    assert target.resolve() == profile
    assert Target.from_json(target.to_json()) == target
    assert Target(profile=profile, max_unsupported_ops=2) == target


def test_a_file_that_is_no_profile_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"name": "mine", "tool": "hammer"}))
    with pytest.raises(ConfigError, match=r"TargetProfile\.tool: got 'hammer'; "):
        Target(profile=str(path))


def test_no_operator_may_fall_back_unless_the_target_says_so() -> None:
    assert Target(profile="edgetpu").limits() == {"unsupported_ops": ("max_unsupported_ops", 0)}
    assert Target(profile="edgetpu", max_unsupported_ops=3).limits() == {"unsupported_ops": ("max_unsupported_ops", 3)}
    assert Target(profile="edgetpu", min_npu_share=0.5).limits() == {"npu_share": ("min_npu_share", 0.5)}
    assert Target(profile="tflm").limits() == {}


def test_the_profiles_lie_where_the_package_takes_them_from() -> None:
    declared = next(
        line for line in (FOLDER.parents[1] / "pyproject.toml").read_text().splitlines() if line.startswith('"tfx_edge.schemas"')
    )
    assert '"targets/*.json"' in declared
