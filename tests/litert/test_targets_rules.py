"""A model against written rules: each rule refuses what breaks it, and nothing else."""

from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from target_models import WIDTH, classifier, constant, dense, float_classifier, float_ended_classifier, int8_tensors, model, top_k
from tiny_flatbuffers import Op, Tensor

from tfx_edge.litert.targets import check
from tfx_edge.schemas.target import OpRule, OpRules, Target, TargetProfile, TargetReport

EDGE, GPU = Target(profile="edgetpu"), Target(profile="gpu-delegate")


def test_a_small_int8_classifier_suits_the_edge_tpu_and_the_gpu() -> None:
    for target in (EDGE, GPU):
        report = check(classifier(), target, {})
        assert report.reasons == ()
        assert report.measurements == {"unsupported_ops": 0, "npu_share": 1}


def test_the_edge_tpu_takes_no_float_values_and_the_gpu_does() -> None:
    report = check(float_classifier(), EDGE, {})
    assert [op.reason for op in report.ops] == [
        "float32 values; the Edge TPU takes int8, uint8 here",
        "comes after FULLY_CONNECTED, the first that the Edge TPU can't take",
    ]
    assert report.measurements == {"unsupported_ops": 1, "npu_share": 0}
    assert check(float_classifier(), GPU, {}).reasons == ()


def test_the_edge_tpu_leaves_conversions_at_the_ends_to_the_cpu() -> None:
    report = check(float_ended_classifier(), EDGE, {})
    assert report.reasons == ()
    assert [op.runs_on for op in report.ops] == ["CPU", "Edge TPU", "Edge TPU", "CPU"]
    assert report.measurements["npu_share"] == 0.5


def test_where_conversions_must_not_stay_on_the_cpu_they_break_a_rule() -> None:
    profile = EDGE.resolve()
    assert profile.rules is not None
    strict = profile.model_copy(update={"rules": profile.rules.model_copy(update={"converts_ends": False})})
    (reason,) = check(float_ended_classifier(), Target(profile=strict), {}).reasons
    assert "QUANTIZE (1): float32 values; the Edge TPU takes int8, uint8 here" in reason


def test_after_the_first_operator_that_the_edge_tpu_lacks_all_run_on_the_cpu_and_on_the_gpu_only_that_one() -> None:
    edge, gpu = check(top_k(), EDGE, {}), check(top_k(), GPU, {})
    assert edge.measurements == {"unsupported_ops": 1, "npu_share": 0.5}
    assert gpu.measurements == {"unsupported_ops": 1, "npu_share": 0.75}
    assert edge.reasons == (
        "edgetpu: unsupported_ops 1, max_unsupported_ops is 0; TOPK_V2 (1): the Edge TPU has no such operator; "
        "FULLY_CONNECTED (1): comes after TOPK_V2, the first that the Edge TPU can't take",
    )
    assert gpu.reasons == ("gpu-delegate: unsupported_ops 1, max_unsupported_ops is 0; TOPK_V2 (1): the GPU has no such operator",)


def test_the_edge_tpu_needs_a_fixed_batch_and_the_gpu_does_not() -> None:
    (reason,) = check(classifier(None), EDGE, {}).reasons
    assert reason.startswith(f"edgetpu: input 'x_tensor' has the open shape [-1, {WIDTH}]; export the model with a fixed batch")
    assert check(classifier(None), GPU, {}).reasons == ()


def test_the_number_of_operators_that_may_fall_back_is_a_budget() -> None:
    assert check(top_k(), Target(profile="gpu-delegate", max_unsupported_ops=1), {}).reasons == ()
    assert check(top_k(), Target(profile="gpu-delegate", min_npu_share=0.75), {}).reasons == ()
    (reason,) = check(top_k(), Target(profile="gpu-delegate", min_npu_share=0.76), {}).reasons
    assert reason.startswith("gpu-delegate: npu_share 0.75, min_npu_share is 0.76; TOPK_V2 (1): ")


def judge(op: Op, rule: OpRule, **limits: Any) -> TargetReport:
    """One operator under one rule, for a device that takes float32."""
    rules = OpRules(device="Chip", dtypes=("float32",), ops={op.kind: rule}, **limits)
    used = tuple(t for t in op.inputs if t is not None and t.value is None)
    return check(model(used, op.outputs, [op]), Target(profile=TargetProfile(name="chip", tool="rules", rules=rules)), {})


def tensor(name: str, *shape: int | None, dtype: str = "float32") -> Tensor:
    return Tensor(name, dtype, shape)


def options(kind: str, **values: Any) -> Any:
    made = getattr(schema, f"{kind}OptionsT")()
    for name, value in values.items():
        setattr(made, name, value)
    return made


def strided(stride: int) -> Op:
    begin, end, strides = (constant(n, v, "int32") for n, v in (("b", [0, 0]), ("e", [1, 8]), ("s", [1, stride])))
    return Op("STRIDED_SLICE", (tensor("x", 1, 8), begin, end, strides), (tensor("y", 1, 8 // stride),), options("StridedSlice"))


def mean(axis: int, dtype: str = "float32") -> Op:
    return Op(
        "MEAN", (tensor("x", 2, 4, dtype=dtype), constant("axis", [axis], "int32")), (tensor("y", 2, dtype=dtype),), options("Reducer")
    )


def padded(*amounts: list[int]) -> Op:
    return Op("PAD", (tensor("x", 1, 4), constant("p", amounts, "int32")), (tensor("y", 1, 6),), options("Pad"))


def pooled(activation: int) -> Op:
    made = options("Pool2D", fusedActivationFunction=activation, filterHeight=1, filterWidth=1, strideH=1, strideW=1)
    return Op("MAX_POOL_2D", (tensor("x", 1, 2, 2, 1),), (tensor("y", 1, 2, 2, 1),), made)


def convolved(height: int, width: int) -> Op:
    made = options("Conv2D", dilationHFactor=height, dilationWFactor=width, strideH=1, strideW=1)
    weights, bias = constant("w", np.ones((1, 1, 1, 1)), "float32"), constant("b", [0.0], "float32")
    return Op("CONV_2D", (tensor("x", 1, 4, 4, 1), weights, bias), (tensor("y", 1, 4, 4, 1),), made)


def packed(axis: int) -> Op:
    return Op("PACK", (tensor("a", 1, 4), tensor("b", 1, 4)), (tensor("y", 1, 2, 4),), options("Pack", axis=axis, valuesCount=2))


def split(axis: int) -> Op:
    return Op(
        "SPLIT", (constant("axis", axis, "int32"), tensor("x", 2, 4)), (tensor("y", 2, 2), tensor("z", 2, 2)), options("Split", numSplits=2)
    )


def absolute(*shape: int) -> Op:
    return Op("ABS", (tensor("x", *shape),), (tensor("y", *shape),))


CASES = {
    "strides": (strided(1), strided(2), OpRule(unit_strides=True), "strides [1, 2]; they must be 1"),
    "a mean over the batch": (mean(1), mean(0), OpRule(keeps_batch=True), "works along the batch, dimension 0"),
    "a mean over the batch, counted from behind": (mean(-1), mean(-2), OpRule(keeps_batch=True), "works along the batch, dimension 0"),
    "padding of the batch": (
        padded([0, 0], [1, 1]),
        padded([1, 0], [1, 1]),
        OpRule(keeps_batch=True),
        "works along the batch, dimension 0",
    ),
    "packing along the batch": (packed(1), packed(0), OpRule(keeps_batch=True), "works along the batch, dimension 0"),
    "splitting the batch": (split(1), split(0), OpRule(keeps_batch=True), "works along the batch, dimension 0"),
    "a fused activation": (
        pooled(0),
        pooled(1),
        OpRule(options={"fusedActivationFunction": (0,)}),
        "fusedActivationFunction 1; only 0 works",
    ),
    "dilation": (convolved(2, 2), convolved(2, 1), OpRule(same_dilation=True), "dilation 2 by 1; it must be the same in both directions"),
    "a computed input": (
        Op("ADD", (tensor("x", 1, 4), constant("c", np.ones((1, 4)), "float32")), (tensor("y", 1, 4),), options("Add")),
        Op("ADD", (tensor("x", 1, 4), tensor("c", 1, 4)), (tensor("y", 1, 4),), options("Add")),
        OpRule(constant_inputs=(1,)),
        "input 1 is computed; its values must be in the file",
    ),
    "too many inputs": (
        Op("ADD_N", (tensor("x", 1, 4), tensor("c", 1, 4)), (tensor("y", 1, 4),), options("AddN")),
        Op("ADD_N", (tensor("x", 1, 4), tensor("c", 1, 4), tensor("d", 1, 4)), (tensor("y", 1, 4),), options("AddN")),
        OpRule(max_inputs=2),
        "3 inputs; 2 are the most",
    ),
    "a rank": (absolute(1, 2, 3), absolute(1, 2), OpRule(ranks=(3, 4)), "an input of 2 dimensions; it takes 3 or 4"),
    "an output that is no vector": (absolute(1, 1, 6), absolute(1, 2, 3), OpRule(vector=True), "an output of shape (1, 2, 3); only one"),
    "a large output": (absolute(1, 16), absolute(1, 17), OpRule(max_elements=16), "an output of 17 values; 16 are the most"),
    "a type": (mean(1), mean(1, "int32"), OpRule(), "int32 values; the Chip takes float32 here"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_rule_refuses_what_breaks_it_and_nothing_else(case: str) -> None:
    kept, broken, rule, reason = CASES[case]
    assert judge(kept, rule).reasons == ()
    assert judge(broken, OpRule(dtypes=("int32",))).reasons == ()
    (told,) = judge(broken, rule).reasons
    assert told.startswith(f"chip: unsupported_ops 1, max_unsupported_ops is 0; {broken.kind} (1): {reason}")


def test_an_operator_may_take_a_type_that_the_others_do_not() -> None:
    assert judge(mean(1, "int32"), OpRule(dtypes=("int32",))).reasons == ()


@pytest.mark.parametrize(
    ("limits", "kept", "broken", "reason"),
    [
        ({"max_rank": 4}, (1, 2, 3, 4), (1, 1, 2, 3, 4), "a tensor of 5 dimensions; the Chip takes 4"),
        ({"max_wide_rank": 3}, (1, 1, 2, 3, 4), (2, 1, 3, 4), "a tensor of shape (2, 1, 3, 4); only the innermost 3"),
    ],
)
def test_shapes_have_limits(limits: dict[str, int], kept: tuple[int, ...], broken: tuple[int, ...], reason: str) -> None:
    assert judge(absolute(*kept), OpRule(), **limits).reasons == ()
    (told,) = judge(absolute(*broken), OpRule(), **limits).reasons
    assert reason in told


def test_weights_may_have_any_type_and_shape() -> None:
    x, y = tensor("x", 1, 4), tensor("y", 1, 2)
    weights = Tensor("w", "int8", (2, 4), 0.1, 0, np.ones((2, 4)))
    assert judge(Op("FULLY_CONNECTED", (x, weights), (y,), schema.FullyConnectedOptionsT()), OpRule(), max_wide_rank=1).reasons == ()


def test_an_open_batch_that_the_model_computes_with_is_told_with_its_cure() -> None:
    x, shape = tensor("x", None, 4), tensor("y", 2, dtype="int32")
    report = check(model((x,), (shape,), [Op("SHAPE", (x,), (shape,))]), GPU, {})
    assert report.ops[0].reason == "the GPU has no such operator, it computes with an open batch; export with a fixed one"


@pytest.mark.parametrize("seed", range(60))
def test_a_damaged_model_gives_a_report(seed: int) -> None:
    rng = np.random.default_rng(seed)
    damaged = np.frombuffer(top_k(), np.uint8).copy()
    damaged[rng.integers(8, len(damaged), 6)] = rng.integers(0, 256, 6)
    for target in (EDGE, GPU):
        for reason in check(damaged.tobytes(), target, {}).reasons:
            assert "\n" not in reason


def test_operators_alike_stand_in_one_line() -> None:
    x, logits, _ = int8_tensors(1)
    again = Tensor("again", "int8", (1, WIDTH), 0.03, 3)
    report = check(model((x,), (logits,), [dense(x, again), dense(again, logits)]), EDGE, {})
    assert [(op.operator, op.count, op.output) for op in report.ops] == [("FULLY_CONNECTED", 2, "again_tensor")]
