"""How edge_stage wires its components; nothing runs."""

import pytest
from tfx.components.trainer.component import Trainer
from tfx.components.transform.component import Transform
from tfx.proto import trainer_pb2
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.pipelines import edge_stage, pareto, tuned_stage
from tfx_edge.pipelines.stage import wire_gate
from tfx_edge.schemas import (
    AccuracyTarget,
    Between,
    CalibrationConfig,
    ClusteringConfig,
    ConversionConfig,
    DistillationConfig,
    EdgeError,
    ExportConfig,
    FineTuningConfig,
    GateConfig,
    LowRankConfig,
    PromotionConfig,
    PruningConfig,
    QatConfig,
    QuantizationConfig,
    SearchConfig,
    Techniques,
    Threshold,
)

GATE = GateConfig(label_key="label", thresholds=(Threshold(metric="MeanSquaredError", higher_is_better=False, max_drop=0.1),))
PRUNING = PruningConfig(fine_tuning=FineTuningConfig(label_key="label"))


@pytest.fixture(scope="module")
def upstream() -> tuple[Trainer, Transform]:
    transform = Transform(
        examples=Channel(standard_artifacts.Examples),
        schema=Channel(standard_artifacts.Schema),
        preprocessing_fn="penguins.preprocessing_fn",
    )
    trainer = Trainer(
        run_fn="penguins.run_fn_keras2",
        examples=transform.outputs["transformed_examples"],
        transform_graph=transform.outputs["transform_graph"],
        train_args=trainer_pb2.TrainArgs(),
        eval_args=trainer_pb2.EvalArgs(),
    )
    return trainer, transform


def ids(stage: list) -> list[str]:
    return [component.id for component in stage]


def test_the_tail_is_complete_and_in_order(upstream: tuple[Trainer, Transform]) -> None:
    stage = edge_stage(*upstream, gate=GATE, pruning=PRUNING)
    assert ids(stage) == ["CalibrationGen", "Pruner", "Quantizer", "TFLiteExporter", "EdgeValidator"]
    assert stage.model.type is standard_artifacts.Model
    assert stage.blessing.type is standard_artifacts.ModelBlessing


def test_a_promotion_comes_last_and_gets_all_that_a_release_tells_of_itself(upstream: tuple[Trainer, Transform]) -> None:
    promotion = PromotionConfig(channels="/channels", keyring="/keys/keyring.json")
    stage = edge_stage(*upstream, gate=GATE, promotion=promotion, name="int8")
    promoter = stage[-1]
    assert ids(stage)[-2:] == ["EdgeValidator.int8", "EdgePromoter.int8"]
    trainer, transform = upstream
    assert promoter.inputs == {
        "model": stage.model,
        "model_blessing": stage.blessing,
        "report": stage.report,
        "baseline_model": trainer.outputs["model"],
        "examples": transform.inputs["examples"],
    }
    assert PromotionConfig.from_json(promoter.exec_properties["config"]) == promotion
    assert stage.pushed_model is promoter.outputs["pushed_model"]
    assert edge_stage(*upstream, gate=GATE).pushed_model is None


def test_without_pruning_the_quantizer_takes_the_trainers_model(upstream: tuple[Trainer, Transform]) -> None:
    stage = edge_stage(*upstream, gate=GATE)
    quantizer = next(c for c in stage if c.id == "Quantizer")
    assert upstream[0].outputs["model"] in quantizer.inputs.values()


def test_a_scheme_without_activation_ranges_needs_no_calibration(upstream: tuple[Trainer, Transform]) -> None:
    stage = edge_stage(*upstream, gate=GATE, quantization=QuantizationConfig(scheme="float16"))
    assert ids(stage) == ["Quantizer", "TFLiteExporter", "EdgeValidator"]


def test_a_search_that_may_need_activation_ranges_gets_a_calibration_sample(upstream: tuple[Trainer, Transform]) -> None:
    threshold = Threshold(metric="MeanSquaredError", higher_is_better=False, max_drop=0.1)
    for escalation, there in ((("bias_correction",), True), (("channel_scales",), False)):
        target = AccuracyTarget(threshold=threshold, label_key="label", split="eval", escalation=escalation)
        stage = edge_stage(*upstream, gate=GATE, quantization=QuantizationConfig(scheme="dynamic_range", accuracy_target=target))
        assert ("CalibrationGen" in ids(stage)) == there


def test_the_gate_compares_with_the_trainers_model_even_when_it_was_pruned(upstream: tuple[Trainer, Transform]) -> None:
    stage = edge_stage(*upstream, gate=GATE, pruning=PRUNING)
    assert stage[-1].inputs["baseline_model"] is upstream[0].outputs["model"]


def test_named_stages_can_stand_in_one_pipeline(upstream: tuple[Trainer, Transform]) -> None:
    first, second = (edge_stage(*upstream, gate=GATE, pruning=PRUNING, name=name) for name in ("a", "b"))
    assert not set(ids(first)) & set(ids(second))
    assert first.model.producer_component_id == "TFLiteExporter.a"


TUNING = FineTuningConfig(label_key="label")
ALL = {
    "distillation": DistillationConfig(fine_tuning=TUNING),
    "low_rank": LowRankConfig(fine_tuning=TUNING),
    "pruning": PRUNING,
    "clustering": ClusteringConfig(fine_tuning=TUNING),
    "quantization": QuantizationConfig(qat=QatConfig(fine_tuning=TUNING)),
}


def test_every_technique_takes_the_model_of_the_one_before_and_training_needs_no_calibration(upstream: tuple[Trainer, Transform]) -> None:
    stage = edge_stage(*upstream, gate=GATE, **ALL, module_path="penguins", model_fn="penguins.build_model")
    steps = ["Distiller", "LowRankFactorizer", "Pruner", "Clusterer", "Quantizer", "TFLiteExporter", "EdgeValidator"]
    assert ids(stage) == steps
    taken = [step.inputs["model" if step.id == "EdgeValidator" else "float_model"].producer_component_id for step in stage]
    assert taken == ["Trainer", *steps[:-1]]
    assert {step.exec_properties["module_path"] for step in stage[:5]} == {"penguins"}
    assert {step.exec_properties["model_fn"] for step in stage[:5]} == {"penguins.build_model"}
    assert stage[4].inputs["examples"] is upstream[1].outputs["transformed_examples"]


def test_variants_share_the_trainer_the_gate_and_a_sample_that_both_would_take(upstream: tuple[Trainer, Transform]) -> None:
    variants = {
        "plain": Techniques(),
        "pruned": Techniques(pruning=PRUNING),
        "half": Techniques(quantization=QuantizationConfig(scheme="float16")),
        "other_sample": Techniques(calibration=CalibrationConfig(num_examples=7)),
    }
    stage = pareto(*upstream, variants, gate=GATE)
    assert [i for i in ids(stage) if i.startswith("CalibrationGen")] == ["CalibrationGen.plain", "CalibrationGen.other_sample"]
    assert sum(i.startswith("EdgeValidator") for i in ids(stage)) == 4 and ids(stage)[-1] == "ModelSelector"
    validators = [c for c in stage if c.id.startswith("EdgeValidator")]
    assert all(v.inputs["baseline_model"] is upstream[0].outputs["model"] for v in validators)
    assert {v.exec_properties["config"] for v in validators} == {GATE.to_json()}
    assert stage.model.producer_component_id == stage.blessing.producer_component_id == "ModelSelector"


@pytest.mark.parametrize(("variants", "text"), [({}, "no variants"), ({"a b": Techniques()}, "variant 'a b'")])
def test_variants_that_cannot_be_wired_are_refused(upstream: tuple[Trainer, Transform], variants: dict, text: str) -> None:
    with pytest.raises(EdgeError, match=text):
        pareto(*upstream, variants, gate=GATE)


def test_a_search_takes_the_place_of_techniques_and_quantizer(upstream: tuple[Trainer, Transform]) -> None:
    search = SearchConfig(
        techniques=Techniques(pruning=PRUNING),
        space={"pruning.target_sparsity": Between(low=0.5, high=0.9)},
        label_key="label",
        threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01),
    )
    stage = tuned_stage(*upstream, search, gate=GATE)
    assert ids(stage) == ["CalibrationGen", "CompressionTuner", "TFLiteExporter", "EdgeValidator"]
    tuner, exporter, validator = stage[1:]
    assert tuner.outputs["quantization_plan"] is exporter.inputs["quantization_plan"]
    assert validator.inputs["baseline_model"] is upstream[0].outputs["model"]
    half = search.model_copy(update={"techniques": Techniques(pruning=PRUNING, quantization=QuantizationConfig(scheme="float16"))})
    assert ids(tuned_stage(*upstream, half, gate=GATE))[0] == "CompressionTuner"


def test_the_calibration_sample_holds_nothing_of_the_split_that_the_gate_evaluates_on(upstream: tuple[Trainer, Transform]) -> None:
    stage = edge_stage(*upstream, gate=GATE.model_copy(update={"split": "test"}))
    config = CalibrationConfig.from_json(stage[0].exec_properties["config"])
    assert config.held_out == ("test",)
    own = edge_stage(*upstream, gate=GATE.model_copy(update={"split": "test"}), calibration=CalibrationConfig(held_out=()))
    assert CalibrationConfig.from_json(own[0].exec_properties["config"]).held_out == ()


def test_an_export_of_raw_features_is_gated_on_what_transform_was_given(upstream: tuple[Trainer, Transform]) -> None:
    trainer, transform = upstream
    raw = ExportConfig(features="raw")
    stages = [
        edge_stage(trainer, transform, gate=GATE, export=raw),
        pareto(trainer, transform, {"int8": Techniques()}, gate=GATE, export=raw)[:-1],
    ]
    assert all(stage[-1].inputs["raw_examples"] is transform.inputs["examples"] for stage in stages)
    assert "raw_examples" not in edge_stage(trainer, transform, gate=GATE)[-1].inputs
    with pytest.raises(EdgeError, match="features 'raw': Mine has no input 'examples'"):
        wire_gate(trainer, NoExamples(transform), stages[0][1], GATE, raw, None)


class NoExamples:
    """A component in Transform's place that was given something else."""

    def __init__(self, transform: Transform) -> None:
        self.id, self.inputs, self.outputs = "Mine", {}, transform.outputs


@pytest.mark.parametrize(
    ("signatures", "own", "judged"),
    [((), None, None), (("encode",), None, "encode"), (("a", "serving_default"), None, "serving_default"), (("a", "b"), "b", "b")],
)
def test_the_gate_judges_the_signature_that_is_exported(
    upstream: tuple[Trainer, Transform], signatures: tuple[str, ...], own: str | None, judged: str | None
) -> None:
    quantization = QuantizationConfig(scheme="dynamic_range", conversion=ConversionConfig(signatures=signatures))
    stage = edge_stage(*upstream, gate=GATE.model_copy(update={"signature": own}), quantization=quantization)
    assert GateConfig.from_json(stage[-1].exec_properties["config"]).signature == judged


def test_a_search_refuses_signatures_before_anything_runs() -> None:
    techniques = Techniques(quantization=QuantizationConfig(scheme="float16", conversion=ConversionConfig(signatures=("a",))))
    with pytest.raises(EdgeError, match="conversion.signatures: a trial changes the Keras model"):
        SearchConfig(techniques=techniques, space={"pruning": Between(low=0, high=1)}, label_key="label", threshold=GATE.thresholds[0])
