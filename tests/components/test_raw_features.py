"""An edge model with Transform's preprocessing inside: exported, against the Trainer's serving signature, and gated on raw examples."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import gate_data
import numpy as np
import penguin_data
import penguins
import pytest
import tensorflow as tf
from ai_edge_litert import schema_py_generated as schema
from example_shards import examples_artifact
from numpy.typing import NDArray
from tfx.types import standard_artifacts
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.components import keys
from tfx_edge.components.edge_validator.executor import Executor as Validator
from tfx_edge.components.edge_validator.model_pair import ModelFault, ModelPair, Models
from tfx_edge.components.examples import batch_tensors, decode, raw_schema
from tfx_edge.components.raw_features import golden_features, with_preprocessing
from tfx_edge.components.tflite_exporter.executor import Executor as Exporter
from tfx_edge.litert.runner import Runner
from tfx_edge.optimize.raw_features import TransformGraph, device_features
from tfx_edge.schemas import Budget, EdgeError, ExportConfig, GateConfig, GateReport, Manifest, Slice, Threshold
from tfx_edge.schemas.artifact_types import EdgeReport

GATE = GateConfig(
    label_key="species",
    thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01, lower_bound=0.9),),
    slices=(Slice(feature_keys=("species",)),),
    min_examples=5,
    layer_examples=0,  # which converts the baseline, as a budget against it does
)
RECORDS = penguin_data.raw_examples()


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """Transform and Trainer on the penguins, and an export with features 'raw': `graph`, `model`, `edge`."""
    folder = tmp_path_factory.mktemp("raw")
    fn_args = penguin_data.transform(folder)
    penguins.run_fn_keras2(SimpleNamespace(**{**vars(fn_args), "serving_model_dir": str(folder / "trained" / "Format-Serving")}))
    model = gate_data.artifact(standard_artifacts.Model, folder / "trained", 1)
    graph = gate_data.artifact(standard_artifacts.TransformGraph, Path(fn_args.transform_output), 2)
    edge = gate_data.artifact(standard_artifacts.Model, folder / "edge", 3)
    (folder / "edge").mkdir()
    Exporter().Do(
        {keys.FLOAT_MODEL: [model], keys.TRANSFORM_GRAPH: [graph]},
        {keys.MODEL: [edge]},
        {keys.CONFIG: ExportConfig(features="raw").to_json()},
    )
    return SimpleNamespace(model=model, graph=graph, edge=edge)


def flatbuffer(edge: Any) -> bytes:
    return Path(edge.uri, "Format-Serving", "tflite").read_bytes()


def fed(graph: Any, records: list[bytes] = RECORDS) -> dict[str, NDArray[Any]]:
    """Raw examples as a device feeds them."""
    return device_features(batch_tensors(*decode(records, raw_schema(graph.uri))))


def served(trained: SimpleNamespace) -> NDArray[Any]:
    """What the Trainer's own signature makes of the serialized examples."""
    loaded = tf.saved_model.load(f"{trained.model.uri}/Format-Serving")
    values: NDArray[Any] = loaded.signatures["serving_default"](examples=tf.constant(RECORDS))["outputs"].numpy()
    return values


def test_the_edge_model_predicts_from_raw_examples_what_the_serving_signature_does(trained: SimpleNamespace) -> None:
    runner = Runner(flatbuffer(trained.edge))
    assert set(runner.signature.input_names) == set(penguins.FEATURES)  # not the label
    [have] = runner(fed(trained.graph)).values()
    np.testing.assert_allclose(have, served(trained), atol=1e-5)


def test_manifest_and_golden_vectors_are_of_the_model_on_raw_features(trained: SimpleNamespace) -> None:
    manifest = Manifest.from_json(Path(trained.edge.uri, "edge", "manifest.json").read_bytes())
    assert manifest.features == "raw"
    assert set(manifest.signature.input_names) == set(penguins.FEATURES)
    with np.load(Path(trained.edge.uri, "edge", "golden.npz")) as golden:
        [output] = [golden[name] for name in golden.files if name.startswith("output:")]
    assert np.ptp(output) > 0.1  # inputs far off would all come out alike


def quantized_inputs() -> bytes:
    """As the penguins' model takes them, int8 `[n, 1]` each; hands them on."""
    into = tuple(Tensor(name, "int8", (None, 1), 0.05, 3) for name in penguins.FEATURES)
    out = tuple(Tensor(f"{name}_out", "int8", (None, 1), 0.05, 3) for name in penguins.FEATURES)
    shape = Tensor("shape", "int32", (2,), value=np.array([-1, 1]))
    return pack([Graph("serving_default", into, out, tuple(Op("RESHAPE", (x, shape), (y,)) for x, y in zip(into, out, strict=True)))])


def test_quantized_inputs_get_transforms_outputs_to_half_a_step(trained: SimpleNamespace) -> None:
    features = fed(trained.graph)
    runner = Runner(with_preprocessing(quantized_inputs(), TransformGraph(trained.graph.uri)))
    have = runner(features)
    for name in penguins.FEATURES:
        want = (features[name] - features[name].mean()) / features[name].std()
        assert np.abs(have[f"{name}_out"].ravel() - want.ravel()).max() < 0.0251
    golden = golden_features(quantized_inputs(), TransformGraph(trained.graph.uri))
    assert {v.shape for v in golden.values()} == {(8,)}
    assert all(np.ptp(values) > 0.5 for values in runner(golden).values())


def test_without_a_transform_graph_there_is_nothing_to_take_in() -> None:
    with pytest.raises(EdgeError, match="features 'raw' without transform_graph"):
        with_preprocessing(quantized_inputs(), None)


def run_gate(folder: Path, trained: SimpleNamespace, edge: Any, *, raw: bool = True, config: GateConfig = GATE) -> GateReport:
    examples = examples_artifact(folder / "examples", {"eval": (RECORDS[::2], RECORDS[1::2])})
    inputs = {
        keys.MODEL: [edge],
        keys.BASELINE_MODEL: [trained.model],
        keys.EXAMPLES: [examples],  # which are raw, so that a gate that evaluates on them fails
        keys.TRANSFORM_GRAPH: [trained.graph],
    }
    if raw:
        inputs[keys.RAW_EXAMPLES] = [examples]
    outputs = {
        keys.BLESSING: [gate_data.artifact(standard_artifacts.ModelBlessing, folder / "blessing", 10)],
        keys.EVALUATION: [gate_data.artifact(standard_artifacts.ModelEvaluation, folder / "evaluation", 11)],
        keys.REPORT: [gate_data.artifact(EdgeReport, folder / "report", 12)],
    }
    for made in outputs.values():
        Path(made[0].uri).mkdir()
    context = Validator.Context(
        make_beam_pipeline_fn=lambda: beam.Pipeline(argv=list(gate_data.BEAM_ARGS)), tmp_dir=str(folder / "tmp"), unique_id="1"
    )
    Validator(context).Do(inputs, outputs, {keys.CONFIG: config.to_json(), "current_component_id": "EdgeValidator"})
    report = GateReport.from_json((folder / "report" / "report.json").read_bytes())
    assert report.blessed == (folder / "blessing" / "BLESSED").exists()
    return report


def test_the_gate_feeds_the_candidate_raw_and_the_baseline_transformed_features(trained: SimpleNamespace, tmp_path: Path) -> None:
    config = GATE.model_copy(update={"layer_examples": 8, "budget": Budget(min_gzip_ratio=0.5)})
    report = run_gate(tmp_path, trained, trained.edge, config=config)
    assert report.blessed, report.reasons
    labels = fed(trained.graph)["species"].ravel()
    right = served(trained).argmax(axis=1) == labels
    overall = [m for m in report.metrics if m.slice == "Overall"]
    assert [m.examples for m in overall] == [len(RECORDS)]
    assert overall[0].candidate == overall[0].baseline == pytest.approx(right.mean())
    by_slice = {m.slice: m.baseline for m in report.metrics if m.slice != "Overall"}
    assert by_slice == {f"species={i}": pytest.approx(right[labels == i].mean()) for i in range(3)}
    assert report.layers is not None  # the float model's operators, its preprocessing in front of it


def other_preprocessing(edge: Any, folder: Path) -> Any:
    """The edge model with another mean in its preprocessing, as if Transform had seen other penguins."""

    def edit(parsed: Any) -> None:
        graph = parsed.subgraphs[0]
        kinds = [max(code.builtinCode, code.deprecatedBuiltinCode) for code in parsed.operatorCodes]
        minus = next(op for op in graph.operators if kinds[op.opcodeIndex] == schema.BuiltinOperator.SUB)
        buffer = parsed.buffers[graph.tensors[minus.inputs[1]].buffer]
        buffer.data = np.frombuffer((np.frombuffer(bytes(buffer.data), np.float32) + 1).tobytes(), np.uint8)

    (folder / "other" / "Format-Serving").mkdir(parents=True)
    (folder / "other" / "edge").mkdir()
    (folder / "other" / "Format-Serving" / "tflite").write_bytes(gate_data.edited(flatbuffer(edge), edit))
    (folder / "other" / "edge" / "manifest.json").write_bytes(Path(edge.uri, "edge", "manifest.json").read_bytes())
    return gate_data.artifact(standard_artifacts.Model, folder / "other", 4)


def test_a_candidate_with_another_preprocessing_is_not_blessed(trained: SimpleNamespace, tmp_path: Path) -> None:
    report = run_gate(tmp_path, trained, other_preprocessing(trained.edge, tmp_path))
    assert not report.blessed
    assert "SparseCategoricalAccuracy" in report.reasons[0]


def test_without_raw_examples_nothing_is_blessed(trained: SimpleNamespace, tmp_path: Path) -> None:
    report = run_gate(tmp_path, trained, trained.edge, raw=False)
    assert report.reasons == ("candidate: takes raw features, and there is no raw_examples; give EdgeValidator raw_examples",)


def test_a_candidate_that_reads_the_raw_label_is_refused(trained: SimpleNamespace, tmp_path: Path) -> None:
    label, real, y = Tensor("species", "int64", (None, 1)), Tensor("real", "float32", (None, 1)), Tensor("y", "float32", (None, 3))
    cast = schema.CastOptionsT()
    cast.inDataType, cast.outDataType = schema.TensorType.INT64, schema.TensorType.FLOAT32
    weights = Tensor("w", "float32", (3, 1), value=np.ones((3, 1)))
    ops = (Op("CAST", (label,), (real,), cast), Op("FULLY_CONNECTED", (real, weights, None), (y,), schema.FullyConnectedOptionsT()))
    (tmp_path / "tflite").write_bytes(pack([Graph("serving_default", (label,), (y,), ops)]))
    pair = ModelPair(Models(str(tmp_path / "tflite"), f"{trained.model.uri}/Format-Serving", transform_graph=trained.graph.uri, raw=True))
    transformed = {name: np.zeros((2, 1), np.float32) for name in penguins.FEATURES}
    with pytest.raises(ModelFault, match="its inputs are species, those that Transform makes the baseline's of body_mass_g, culmen"):
        pair.predict({**transformed, "raw feature: species": np.array([[0], [1]])})
