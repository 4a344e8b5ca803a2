"""Run reports with everything in them: of an ordinary run, with hostile names, and far too large."""

import base64
from typing import Any

from tfx_edge.schemas import (
    AccuracyTarget,
    Budget,
    ConfusionMatrix,
    Disagreement,
    ExampleFeature,
    ExampleImage,
    GateConfig,
    GateReport,
    Interval,
    JudgedModel,
    LayerError,
    LayerErrors,
    LayerSparsity,
    LineageArtifact,
    LineageStep,
    Manifest,
    MetricComparison,
    OpPlacement,
    OutputDecisions,
    OutputDrift,
    OutputValue,
    PairedDecisions,
    PastRun,
    PruningConfig,
    QuantizationConfig,
    QuantizationPlan,
    RunReport,
    SearchTrial,
    Signature,
    Slice,
    SliceDrift,
    SparsityReport,
    Target,
    TargetReport,
    TensorSpec,
    Threshold,
)
from tfx_edge.schemas.quantization import FloatOp
from tfx_edge.schemas.training import FineTuningConfig

ACCURACY = "SparseCategoricalAccuracy"
HOSTILE = "</script><script>window.hit=1</script><img src=x onerror=window.hit=1>\"'&amp;{{7*7}}"


def gate_report(name: str = "digit", slices: int = 10, layers: int = 4, reasons: tuple[str, ...] = (), **fields: Any) -> GateReport:
    """A gate on a feature of a name; slice i lost i thousandths."""
    threshold = Threshold(metric=ACCURACY, max_drop=0.05)
    config = GateConfig(
        label_key="label",
        thresholds=(threshold,),
        slices=(Slice(feature_keys=(name,)),),
        confidence=0.95,
        budget=Budget(max_gzip_bytes=100_000, max_latency_ratio=1.5),
        targets=(Target(profile="tflm", max_arena_bytes=50_000),),
    )
    titles = ["Overall", *(f"{name}={i}" for i in range(slices))]
    return GateReport(
        blessed=not reasons,
        reasons=reasons,
        model_digest="ab" * 32,
        config=config,
        metrics=tuple(
            MetricComparison(
                metric=ACCURACY,
                slice=title,
                examples=1000 if i == 0 else 100 + i,
                baseline=0.98,
                candidate=0.98 - i / 1000,
                difference=-i / 1000,
                interval=Interval(low=-i / 1000 - 0.01, high=-i / 1000 + 0.01, confidence=0.95, method="agresti_min"),
            )
            for i, title in enumerate(titles)
        ),
        drift=tuple(
            SliceDrift(
                slice=title,
                outputs=(
                    OutputDrift(
                        output=None, examples=100, flip_rule="argmax", flips=i, mean_abs_error=0.01, worst_abs_error=0.5, sqnr_db=30.0
                    ),
                ),
            )
            for i, title in enumerate(titles)
        ),
        layers=LayerErrors(
            layers=tuple(
                LayerError(
                    op="CONV_2D", tensor=f"{name}/layer_{i}", sqnr_db=40.0 - i % 30, mean_abs_error=0.1, worst_abs_error=1.0, loss_db=i % 7
                )
                for i in range(layers)
            ),
            examples=32,
            skipped=1,
        ),
        **{
            "size_bytes": 156_624,
            "gzip_bytes": 83_138,
            "baseline_size_bytes": 576_956,
            "baseline_gzip_bytes": 550_052,
            "latency_ms": 0.5,
            "baseline_latency_ms": 0.8,
            "peak_memory_bytes": 1_000_000,
            "operators": {"CONV_2D": 2},
            "targets": (
                TargetReport(
                    profile="tflm",
                    tool="tflite-micro",
                    measurements={"arena_bytes": 60_000},
                    ops=(OpPlacement(operator="CONV_2D", count=2, runs_on="CPU", reason=f"no {name}"),),
                    reasons=(),
                ),
            ),
            "notes": (f"{name}: a note",),
            "runtime": "LiteRT 2.3.0",
        }
        | fields,
    )


def decisions(name: str = "image", classes: int = 3, side: int = 8, worst: int = 4) -> PairedDecisions:
    """One output; class 0 is taken once more for class 1 by the edge model."""
    baseline = [[10 if i == j else 0 for j in range(classes)] for i in range(classes)]
    candidate = [row[:] for row in baseline]
    candidate[0][0], candidate[0][1] = 9, 1
    pixels = bytes((i * 7) % 256 for i in range(side * side))
    image = ExampleImage(height=side, width=side, channels=1, step=1, low=0, high=1, pixels=base64.b64encode(pixels).decode())
    return PairedDecisions(
        outputs=(
            OutputDecisions(
                output=None,
                rule="argmax",
                confusion=ConfusionMatrix(baseline=tuple(map(tuple, baseline)), candidate=tuple(map(tuple, candidate))),
                worst=tuple(
                    Disagreement(
                        example=f"{i:032x}",
                        label=0.0,
                        error=0.9 - i / 100,
                        flipped=i == 0,
                        baseline_decision=0,
                        candidate_decision=1 if i == 0 else 0,
                        predictions=tuple(OutputValue(position=p, baseline=0.5, candidate=0.25) for p in range(min(classes, 10))),
                        features=(
                            ExampleFeature(name=name, dtype="float32", shape=(side, side, 1), values=(0.0,), image=image),
                            ExampleFeature(name=f"{name} word", dtype="str", shape=(), values=(name,)),
                        ),
                    )
                    for i in range(worst)
                ),
            ),
        )
    )


def manifest(labels: tuple[str, ...] = ()) -> Manifest:
    spec = TensorSpec(name="image", shape=(None, 8, 8, 1), dtype="float32")
    return Manifest(
        description="",
        labels=labels,
        digest="ab" * 32,
        float_model_digest="cd" * 32,
        plan_digest=None,
        scheme="int8",
        signature=Signature(inputs=(spec,), outputs=(TensorSpec(name="digit", shape=(None, 3), dtype="float32"),)),
        size_bytes=156_624,
        gzip_bytes=83_138,
        float_size_bytes=576_956,
        float_gzip_bytes=292_305,
        minimum_runtime="1.14.0",
        operators={"CONV_2D": 2},
    )


def plan(name: str = "conv", trials: int = 3) -> QuantizationPlan:
    target = AccuracyTarget(label_key="label", split="search", threshold=Threshold(metric=ACCURACY, max_drop=0.01))
    return QuantizationPlan(
        config=QuantizationConfig(accuracy_target=target),
        recipe=({"regex": ".*", "operation": "*", "algorithm_key": "min_max_uniform_quantize"},),
        float_ops=(FloatOp(op="SOFTMAX", tensor=name, reason=f"because {name}"),),
        float_model_digest="cd" * 32,
        trials=tuple(
            SearchTrial(step="as_asked", scheme="int8", metric=0.9 + i / 1000, size_bytes=100_000 + 1000 * i, feasible=i % 2 == 0)
            for i in range(trials)
        ),
        decision=f"kept {name}",
        warnings=(f"beware of {name}",),
    )


def sparsity(name: str = "conv", layers: int = 3) -> SparsityReport:
    return SparsityReport(
        config=PruningConfig(target_sparsity=0.5, fine_tuning=FineTuningConfig(label_key="label")),
        layers=tuple(
            LayerSparsity(layer=f"{name}_{i}", type="Conv2D", weights=100, zeros=50, sparsity=0.5, target=0.5, pruned=True)
            for i in range(layers)
        ),
        sparsity=0.5,
    )


def past(runs: int = 3, name: str = "EdgeValidator") -> tuple[PastRun, ...]:
    return tuple(
        PastRun(
            run_id=f"run {i}",
            validator=name,
            started=f"2026-01-{1 + i % 28:02} 10:00:00",
            state="not blessed" if i == 1 else "blessed",
            metric=ACCURACY,
            baseline=0.98,
            candidate=0.97 + i / 10_000,
            size_bytes=156_000 + i,
            gzip_bytes=83_000 + i,
        )
        for i in range(runs)
    )


def lineage(name: str = "Trainer", steps: int = 2) -> tuple[LineageStep, ...]:
    def artifact(i: int) -> LineageArtifact:
        return LineageArtifact(key="model", type="Model", id=i, uri=f"/runs/{name}/{i}")

    return tuple(
        LineageStep(
            component=f"{name}{i}",
            state="COMPLETE",
            started="2026-01-01 10:00:00",
            seconds=1.5 * i,
            inputs=(artifact(i),),
            outputs=(artifact(i + 1),),
        )
        for i in range(steps)
    )


def whole_run(name: str = "digit", labels: tuple[str, ...] = (), reasons: tuple[str, ...] = (), models: int = 1) -> RunReport:
    """A run with all that a page can show."""
    return RunReport(
        pipeline=name,
        run_id=f"{name} run",
        started="2026-01-03 10:00:00",
        models=tuple(
            JudgedModel(
                name=f"{name} {i}",
                uri=f"/models/{name}",
                report=gate_report(name, reasons=reasons),
                decisions=decisions(name),
                manifest=manifest(labels),
                plan=plan(name),
                sparsity=sparsity(name),
            )
            for i in range(models)
        ),
        lineage=lineage(name),
        history=past(name=name),
    )


def huge_run() -> RunReport:
    """More of everything than a page can hold."""
    return RunReport(
        pipeline="huge",
        models=(
            JudgedModel(
                name="huge",
                report=gate_report(slices=20_000, layers=5_000, reasons=tuple(f"reason {i}: {'why ' * 20}" for i in range(3000))),
                decisions=decisions(classes=50, side=64, worst=16),
                manifest=manifest(),
                plan=plan(trials=2_000),
                sparsity=sparsity(layers=5_000),
            ),
        ),
        lineage=lineage(steps=2_000),
        history=past(2_000),
    )
