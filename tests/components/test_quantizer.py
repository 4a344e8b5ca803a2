"""Quantizer on artifacts built by hand: what it writes, and what it refuses."""

from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from example_shards import example, schema
from exporting import BEAM_ARGS, SCALARS, SCHEMA, calibration_artifact, files, keras_model, model_artifact, records, run_quantizer, values
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types.channel import Channel
from tfx.types.standard_artifacts import Model
from tfx_bsl.tfxio import tf_example_record

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.quantizer.component import Quantizer
from tfx_edge.components.quantizer.ranges import CollectStatistics
from tfx_edge.litert.activation_statistics import Statistics, from_bytes, to_bytes
from tfx_edge.litert.collector import Collector
from tfx_edge.schemas import EdgeError, QuantizationConfig, QuantizationPlan
from tfx_edge.schemas import artifact_types as types
from tfx_edge.schemas.ranges import RangeMethod

INT8 = QuantizationConfig(scheme="int8", batch_size=32)
DYNAMIC = QuantizationConfig(scheme="dynamic_range")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    return model_artifact(tmp_path_factory.mktemp("trainer") / "model", keras_model())


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> types.CalibrationData:
    return calibration_artifact(tmp_path_factory.mktemp("calibration") / "data", [records(values())])


@pytest.fixture(scope="module")
def quantized(
    model: Model, calibration: types.CalibrationData, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Model, types.QuantizationPlan]:
    return run_quantizer(tmp_path_factory.mktemp("quantizer"), model, calibration, INT8)


def written(plan: types.QuantizationPlan) -> QuantizationPlan:
    return plan_files.read(plan.uri)[0].plan


def test_the_ranges_are_the_extremes_of_the_calibration_data(quantized: tuple[Model, types.QuantizationPlan]) -> None:
    ranges = plan_files.read(quantized[1].uri)[0].ranges
    assert ranges.examples == 300
    for name, column in values().items():
        [found] = [r for tensor, r in ranges.ranges.items() if tensor == f"serving_default_{name}:0"]
        assert (found.min, found.max) == (column.min(), column.max())


def test_the_plan_says_what_it_is_for(quantized: tuple[Model, types.QuantizationPlan]) -> None:
    plan = written(quantized[1])
    assert (plan.config, plan.method, plan.calibration_digest) == (INT8, "ptq", "5a" * 32)
    assert plan.float_ops == ()
    assert quantized[1].get_string_custom_property("scheme") == "int8"
    assert quantized[1].get_string_custom_property("float_model_digest") == plan.float_model_digest
    assert set(files(quantized[1].uri)) == {"plan.json", "ranges.json"}


def test_the_model_is_handed_on_as_it_is(model: Model, quantized: tuple[Model, types.QuantizationPlan]) -> None:
    assert files(quantized[0].uri) == files(model.uri)
    assert "sparsity.json" in files(model.uri)
    before, after = (float_models.load([artifact]).predict(values()) for artifact in (model, quantized[0]))
    np.testing.assert_array_equal(before["logits"], after["logits"])


@pytest.fixture
def flatbuffer(quantized: tuple[Model, types.QuantizationPlan]) -> str:
    """The float flatbuffer that Quantizer put where Beam's workers reach it."""
    [path] = Path(quantized[1].uri).parent.glob("tmp/**/float.tflite")
    return str(path)


EVERY: frozenset[RangeMethod] = frozenset({"min_max", "mse"})


def collect(
    folder: Path, flatbuffer: str, shards: list[list[bytes]], batch_size: int = 32, beam_args: tuple[str, ...] = BEAM_ARGS
) -> tuple[Statistics, ...]:
    calibration = calibration_artifact(folder / "data", shards)
    source = tf_example_record.TFExampleRecord(f"{calibration.uri}/Split-calibration/*.gz", telemetry_descriptors=["test"], schema=SCHEMA)
    with clean_errors(), beam.Pipeline(argv=list(beam_args)) as pipeline:
        parts = pipeline | CollectStatistics(source, flatbuffer, EVERY, batch_size, "the data")
        _ = parts | beam.Map(lambda q: (folder / "statistics.npz").write_bytes(to_bytes(q)))
    return from_bytes((folder / "statistics.npz").read_bytes())


@pytest.mark.parametrize(
    ("shards", "batch_size", "beam_args"),
    [
        (7, 7, BEAM_ARGS),
        (1, 1, BEAM_ARGS),
        (2, 300, ("--runner=DirectRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2")),
    ],
    ids=["shards", "single_rows", "two_processes"],
)
def test_statistics_by_every_method_are_those_of_a_single_process_whatever_the_files_batches_or_workers(
    flatbuffer: str, tmp_path: Path, shards: int, batch_size: int, beam_args: tuple[str, ...]
) -> None:
    drawn = records(values())
    found = collect(tmp_path, flatbuffer, [drawn[i::shards] for i in range(shards)], batch_size, beam_args)
    assert found == Collector(Path(flatbuffer).read_bytes(), EVERY)(values())


def test_nan_in_the_calibration_data_is_refused_and_its_tensor_named(flatbuffer: str, tmp_path: Path) -> None:
    bad = values(20)
    bad["depth"][3] = np.nan
    with pytest.raises(EdgeError, match="^the float flatbuffer: tensor 'serving_default_depth:0' took NaN"):
        collect(tmp_path, flatbuffer, [records(bad)])


def test_a_record_without_a_feature_is_refused(flatbuffer: str, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="feature 'mass' has 0 values in an example"):
        collect(tmp_path, flatbuffer, [[*records(values(5)), example({"length": [1.0], "depth": [1.0], "year": [1.0], "species": [1]})]])


def test_no_examples_are_refused(flatbuffer: str, tmp_path: Path) -> None:
    with pytest.raises(EdgeError, match="^the data: holds no examples; run CalibrationGen again"):
        collect(tmp_path, flatbuffer, [[]])


def test_a_scheme_without_calibration_reads_no_data(model: Model, tmp_path: Path) -> None:
    _, plan = run_quantizer(tmp_path, model, None, DYNAMIC)
    assert written(plan).calibration_digest is None
    assert [op.op for op in written(plan).float_ops] == ["CONCATENATION"]


def nothing_left(folder: Path) -> bool:
    return files(folder / "model") == files(folder / "plan") == {}


def test_calibration_data_without_an_input_names_both_sides(model: Model, tmp_path: Path) -> None:
    others = {name: column for name, column in values(20).items() if name != "mass"}
    features = schema(species=("INT",), **dict.fromkeys(others, ("FLOAT",)))
    calibration = calibration_artifact(tmp_path / "data", [records(others)], features)
    with pytest.raises(EdgeError) as error:
        run_quantizer(tmp_path, model, calibration, INT8)
    assert str(error.value).startswith(f"the calibration data at {tmp_path / 'data'}: no feature 'mass'")
    assert all(f"'{name}'" in str(error.value) for name in (*others, "species")) and "\n" not in str(error.value)
    assert nothing_left(tmp_path)


def test_calibration_data_of_another_shape_is_refused(model: Model, tmp_path: Path) -> None:
    features = schema(**{name: ("FLOAT", 2) if name == "mass" else ("FLOAT",) for name in SCALARS})
    rows = [example({name: [0.5, 1.5] if name == "mass" else [1.0] for name in SCALARS})]
    with pytest.raises(EdgeError, match=r"feature 'mass': an example has \(2,\) of float32, the model's input takes \(1,\) of float32"):
        run_quantizer(tmp_path, model, calibration_artifact(tmp_path / "data", [rows], features), INT8)


def test_nan_in_the_weights_is_refused(tmp_path: Path) -> None:
    broken = keras_model()
    kernel, bias = broken.layers[-1].get_weights()
    kernel[0, 0] = np.nan
    broken.layers[-1].set_weights([kernel, bias])
    with pytest.raises(EdgeError, match="NaN"):
        run_quantizer(tmp_path, model_artifact(tmp_path / "trainer", broken), None, DYNAMIC)
    assert nothing_left(tmp_path)


def channel(kind: Any) -> Channel:
    return Channel(type=kind)


def test_int8_without_calibration_data_is_refused_when_the_pipeline_is_built() -> None:
    with pytest.raises(EdgeError, match="scheme 'int8' without calibration_data"):
        Quantizer(model=channel(Model), config=INT8)
    Quantizer(model=channel(Model), config=DYNAMIC)


def test_int8_without_calibration_data_from_a_parameter_is_refused_when_it_runs(model: Model, tmp_path: Path) -> None:
    parameter = RuntimeParameter(name="quantization", ptype=str)
    assert Quantizer(model=channel(Model), config=parameter).exec_properties[keys.CONFIG] is parameter
    with pytest.raises(EdgeError, match="needs calibration_data and there is none"):
        run_quantizer(tmp_path, model, None, INT8)


def test_the_config_is_stored_as_json() -> None:
    component = Quantizer(model=channel(Model), calibration_data=channel(types.CalibrationData), config=INT8)
    assert QuantizationConfig.from_json(component.exec_properties[keys.CONFIG]) == INT8
    assert set(component.outputs) == {keys.MODEL, keys.QUANTIZATION_PLAN}
