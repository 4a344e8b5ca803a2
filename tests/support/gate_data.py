"""A small classifier, the examples it is judged on, and flatbuffers that are good or damaged in one way."""

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apache_beam as beam
import numpy as np
import tensorflow as tf
import tf_keras
from ai_edge_litert import schema_py_generated as flatbuffer_schema
from example_shards import example, examples_artifact, schema, schema_artifact, transform_graph_artifact
from flatbuffers import Builder
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.components.pusher.executor import Executor as PusherExecutor
from tfx.types import standard_artifacts

from tfx_edge.components import keys
from tfx_edge.components.edge_validator.executor import Executor
from tfx_edge.schemas import GateConfig, GateReport
from tfx_edge.schemas.artifact_types import EdgeReport

FEATURES, CLASSES, EXAMPLES = 4, 3, 400
CITIES = (b"oslo", b"rome", b"lima")
BEAM_ARGS = ("--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=1")


def examples(count: int = EXAMPLES, seed: int = 0) -> dict[str, np.ndarray]:
    """Features by name: x decides the label, but for one in ten; group and city are there to slice by."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(count, FEATURES)).astype(np.float32)
    label = np.where(rng.random(count) < 0.1, rng.integers(CLASSES, size=count), x[:, :CLASSES].argmax(axis=1))
    group = rng.choice(4, size=count, p=[0.4, 0.3, 0.22, 0.08])
    return {"x": x, "label": label, "group": group, "city": np.array(CITIES, object)[rng.integers(3, size=count)]}


def train(data: Mapping[str, np.ndarray]) -> tf_keras.Model:
    """A classifier on x with one hidden layer; random features and least squares take the place of training steps."""
    rng = np.random.default_rng(3)
    x = tf_keras.Input((FEATURES,), name="x")
    hidden = tf_keras.layers.Dense(16, activation="relu")
    model = tf_keras.Model(x, tf_keras.layers.Dense(CLASSES, activation="softmax", name="probabilities")(hidden(x)))
    kernel, bias = rng.normal(size=(FEATURES, 16)), rng.normal(size=16)
    features = np.column_stack([np.maximum(data["x"] @ kernel + bias, 0), np.ones(len(data["x"]))])
    solution = 6 * np.linalg.lstsq(features, np.eye(CLASSES)[data["label"]], rcond=None)[0]
    model.set_weights([kernel, bias, solution[:-1], solution[-1]])
    model.compile("sgd", "sparse_categorical_crossentropy")
    return model


def flatbuffer(model: tf_keras.Model, function: Callable[..., Any] | None = None, **inputs: tuple[int, ...]) -> bytes:
    """Converts to a float flatbuffer.

    Args:
        model: the Keras model on x.
        function: takes the model and the inputs by name; gives the output `probabilities`, or a dict of outputs; by default it
            just calls the model.
        inputs: shapes of the float32 inputs without the batch dimension; by default those of the model.
    """
    folder = _save(model, function or (lambda model, x: model(x)), inputs or {"x": (FEATURES,)})
    return tf.lite.TFLiteConverter.from_saved_model(folder).convert()


def int8_flatbuffer(model: tf_keras.Model, x: np.ndarray) -> bytes:
    """Post-training int8, inputs and outputs too, calibrated on x `[n, 4]`."""
    converter = tf.lite.TFLiteConverter.from_saved_model(_save(model, lambda model, x: model(x), {"x": (FEATURES,)}))
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    converter.representative_dataset = lambda: ([row[None]] for row in x[:100])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    converter.inference_input_type = converter.inference_output_type = tf.int8
    return converter.convert()


def breaking(groups: Sequence[int]) -> Callable[..., Any]:
    """For `flatbuffer` with inputs x and group: right everywhere but in some groups, where the classes are mixed up."""

    def function(model: tf_keras.Model, x: tf.Tensor, group: tf.Tensor) -> tf.Tensor:
        predictions = model(x)
        broken = tf.reduce_any([tf.equal(group, float(g)) for g in groups], axis=0)
        return tf.where(broken[:, None], tf.gather(predictions, [2, 0, 1], axis=1), predictions)

    return function


def saved_model(folder: Path, model: tf_keras.Model, function: Callable[..., Any]) -> str:
    """A baseline that isn't a Keras model: a SavedModel whose signature takes x."""
    return _save(model, function, {"x": (FEATURES,)}, str(folder))


def saved_model_of_x_and_group(folder: Path, model: tf_keras.Model) -> str:
    """A baseline that takes the group too, and makes nothing of it."""
    return _save(model, lambda keras, x, group: keras(x) + 0 * group[:, None], {"x": (FEATURES,), "group": ()}, str(folder))


def _save(model: tf_keras.Model, function: Callable[..., Any], inputs: Mapping[str, tuple[int, ...]], folder: str | None = None) -> str:
    module = tf.Module()
    module.model = model

    def named(**features: tf.Tensor) -> dict[str, tf.Tensor]:
        outputs = function(model, **features)
        return outputs if isinstance(outputs, dict) else {"probabilities": outputs}

    traced = tf.function(named)
    signature = traced.get_concrete_function(**{n: tf.TensorSpec((None, *s), tf.float32, name=n) for n, s in inputs.items()})
    folder = folder or tempfile.mkdtemp()
    tf.saved_model.save(module, folder, signatures=signature)
    return folder


def edited(model: bytes, edit: Callable[[Any], None]) -> bytes:
    """The flatbuffer after `edit` changed its object form."""
    parsed = flatbuffer_schema.ModelT.InitFromObj(flatbuffer_schema.Model.GetRootAs(model, 0))
    edit(parsed)
    builder = Builder(len(model))
    builder.Finish(parsed.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def shuffled_weights(model: bytes, seed: int = 0) -> bytes:
    """The flatbuffer with the values of each weight tensor in another order; it still loads and runs."""

    def edit(parsed: Any) -> None:
        rng = np.random.default_rng(seed)
        shuffled = 0
        for tensor in parsed.subgraphs[0].tensors:
            data = parsed.buffers[tensor.buffer].data
            if data is not None and tensor.shape is not None and len(tensor.shape) >= 2:
                width = len(data) // int(np.prod(tensor.shape))
                parsed.buffers[tensor.buffer].data = rng.permutation(np.array(data, np.uint8).reshape(-1, width)).reshape(-1)
                shuffled += 1
        assert shuffled, "no weights found to shuffle"

    return edited(model, edit)


def killing(model: tf_keras.Model) -> bytes:
    """A flatbuffer whose main graph calls itself for ever: LiteRT runs out of stack when it loads it, and dies."""

    def branching(model: tf_keras.Model, x: tf.Tensor) -> tf.Tensor:
        return tf.cond(x[0, 0] > 0, lambda: model(x), lambda: 1 - model(x))

    def edit(parsed: Any) -> None:
        for operator in parsed.subgraphs[0].operators:
            if isinstance(operator.builtinOptions, flatbuffer_schema.IfOptionsT):
                operator.builtinOptions.thenSubgraphIndex = operator.builtinOptions.elseSubgraphIndex = 0

    return edited(flatbuffer(model, branching), edit)


def needing_runtime(model: bytes, version: bytes) -> bytes:
    """The flatbuffer with another minimum runtime in its metadata."""

    def edit(parsed: Any) -> None:
        for entry in parsed.metadata:
            if entry.name == b"min_runtime_version":
                parsed.buffers[entry.buffer].data = np.frombuffer(version.ljust(16, b"\0"), np.uint8)

    return edited(model, edit)


def run_gate(
    folder: Path,
    *,
    model: bytes,
    baseline: str | None,
    data: Mapping[str, np.ndarray],
    config: GateConfig,
    schema_of: Mapping[str, np.ndarray] | None = None,
    with_transform_graph: bool = True,
    beam_args: Sequence[str] = BEAM_ARGS,
) -> SimpleNamespace:
    """Runs EdgeValidator's executor on artifacts made by hand.

    Returns:
        `report`, the artifacts `model`, `baseline` and `blessing`, `files` of the blessing, and the folder `evaluation`.
    """
    inputs = {keys.MODEL: [edge_model(folder, model)], keys.EXAMPLES: [_examples(folder / "examples", data)]}
    if baseline is not None:
        inputs[keys.BASELINE_MODEL] = [artifact(standard_artifacts.Model, Path(baseline), 7)]
    features = _schema(schema_of or data)
    if with_transform_graph:
        inputs[keys.TRANSFORM_GRAPH] = [transform_graph_artifact(folder / "transform_graph", features)]
    else:
        inputs[keys.SCHEMA] = [schema_artifact(folder / "schema", features)]
    outputs = {
        keys.BLESSING: [artifact(standard_artifacts.ModelBlessing, folder / "blessing", 10)],
        keys.EVALUATION: [artifact(standard_artifacts.ModelEvaluation, folder / "evaluation", 11)],
        keys.REPORT: [artifact(EdgeReport, folder / "report", 12)],
    }
    for made in outputs.values():
        Path(made[0].uri).mkdir(parents=True)
    # With pipeline arguments instead, TFX would spend seconds on packaging itself.
    context = Executor.Context(
        make_beam_pipeline_fn=lambda: beam.Pipeline(argv=list(beam_args)), tmp_dir=str(folder / "tmp"), unique_id="1"
    )
    executor = Executor(context)
    executor.Do(inputs, outputs, {keys.CONFIG: config.to_json(), "current_component_id": "EdgeValidator"})
    return SimpleNamespace(
        report=GateReport.from_json((folder / "report" / "report.json").read_bytes()),
        model=inputs[keys.MODEL][0],
        baseline=next(iter(inputs.get(keys.BASELINE_MODEL, [])), None),
        blessing=outputs[keys.BLESSING][0],
        files=sorted(p.name for p in (folder / "blessing").iterdir()),
        evaluation=folder / "evaluation",
    )


def refused(result: SimpleNamespace) -> str:
    """Asserts that a candidate wasn't blessed in any form; returns the reasons."""
    assert result.files == ["NOT_BLESSED"]
    assert result.blessing.get_int_custom_property("blessed") == 0
    assert not result.report.blessed
    assert pushed(result) == []
    return "\n".join(result.report.reasons)


def pushed(result: SimpleNamespace) -> list[str]:
    """What TFX's own Pusher makes of the blessing: the files that it pushes."""
    target = result.evaluation.parent / "pushed"
    made = artifact(standard_artifacts.PushedModel, result.evaluation.parent / "pushed_model", 20)
    PusherExecutor().Do(
        {"model": [result.model], "model_blessing": [result.blessing]},
        {"pushed_model": [made]},
        {"push_destination": json.dumps({"filesystem": {"base_directory": str(target)}})},
    )
    return sorted(p.name for p in target.rglob("*") if p.is_file())


def edge_model(folder: Path, model: bytes) -> Any:
    (folder / "edge_model" / "Format-Serving").mkdir(parents=True)
    (folder / "edge_model" / "Format-Serving" / "tflite").write_bytes(model)
    return artifact(standard_artifacts.Model, folder / "edge_model", 5)


def _examples(folder: Path, data: Mapping[str, np.ndarray]) -> standard_artifacts.Examples:
    rows = [
        example({name: [a[i]] if isinstance(a[i], bytes) else np.ravel(a[i]).tolist() for name, a in data.items()})
        for i in range(len(next(iter(data.values()))))
    ]
    return examples_artifact(folder, {"eval": (rows[::2], rows[1::2])})


def _schema(features: Mapping[str, np.ndarray]) -> schema_pb2.Schema:
    return schema(**{name: ({"f": "FLOAT", "i": "INT", "O": "BYTES"}[a.dtype.kind], *a.shape[1:]) for name, a in features.items()})


def artifact(artifact_type: Any, path: Path, id_: int) -> Any:
    made = artifact_type()
    made.uri, made.id = str(path), id_
    return made
