"""CalibrationGen: what it refuses, leaves out and counts."""

import json
from pathlib import Path

import pytest
from calibration_runs import BY_LABEL, COVERAGE, UNIFORM, Features, encode, failure, files, ordered, population, run, sampled, summary
from example_shards import schema
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import Channel

from tfx_edge.components import keys
from tfx_edge.components.calibration_gen.component import CalibrationGen
from tfx_edge.schemas import CalibrationConfig, EdgeError, NonFiniteCounts
from tfx_edge.schemas.artifact_types import CalibrationData


@pytest.fixture(scope="module")
def records() -> list[bytes]:
    return encode(population())


def test_a_split_without_examples_is_an_error(records: list[bytes], tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"split": "eval"})
    assert failure(tmp_path, [records], config=config).startswith(
        "split 'eval': it holds no examples, num_examples asks for 30; name a split"
    )


def test_a_split_that_does_not_exist_is_an_error_that_names_those_there(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records], config=UNIFORM.model_copy(update={"split": "test"}))
    assert text == f"split 'test': not in the examples at {tmp_path / 'examples'}, which have train, eval; name one of these"


def test_too_few_distinct_examples_are_an_error_that_counts_them(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records[:20] * 9])
    assert text == (
        "num_examples 30: split 'train' has 20 distinct examples (180 with 160 duplicates); lower num_examples to 20 or less, "
        "or give CalibrationGen a split with more data"
    )


def test_stratifying_by_a_feature_that_the_schema_lacks_is_an_error(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records], config=BY_LABEL.model_copy(update={"stratify_by": "labels"}))
    assert text == "stratify_by 'labels': not a feature of the schema, which has image, label, name, tags, weights; name one of these"


@pytest.mark.parametrize("tags", [{}, {"tags": []}], ids=["no feature", "no value"])
def test_stratifying_by_a_feature_that_an_example_lacks_is_an_error(tags: Features, tmp_path: Path) -> None:
    examples = [e | {"tags": [1]} for e in population(60)]
    del examples[40]["tags"]
    config = BY_LABEL.model_copy(update={"stratify_by": "tags"})
    text = failure(tmp_path, [encode([*examples[:40], examples[40] | tags, *examples[41:]])], config=config)
    assert text.startswith("stratify_by 'tags': an example has no value of it; mend the data")


def test_stratifying_by_a_continuous_feature_is_an_error(tmp_path: Path) -> None:
    records = encode([{"x": [i / 7]} for i in range(50)])
    config = BY_LABEL.model_copy(update={"stratify_by": "x"})
    text = failure(tmp_path, [records], config=config, features=schema(x=("FLOAT",)))
    assert text.startswith("stratify_by 'x': 50 different values in split 'train', more than num_examples 30")


@pytest.mark.parametrize(
    ("broken", "have"),
    [({}, "0 integer values"), ({"label": [1, 2]}, "2 integer values"), ({"label": [0.5]}, "0 integer values")],
    ids=["missing", "two values", "another type"],
)
def test_an_example_that_lacks_a_dense_feature_is_an_error_wherever_it_is(broken: Features, have: str, tmp_path: Path) -> None:
    examples = population()
    del examples[150]["label"]
    examples[150] |= broken
    text = failure(tmp_path, [encode(examples)], config=UNIFORM.model_copy(update={"num_examples": 2}))
    assert text.startswith(
        f"the examples don't fit their schema: feature 'label' has {have} in an example, the schema says 1; mend the data"
    )


def test_a_feature_with_a_default_value_may_be_missing(tmp_path: Path) -> None:
    features = schema(n=("INT",), x=("FLOAT", None))
    tensor = features.tensor_representation_group[""].tensor_representation["x"].dense_tensor
    tensor.column_name = "x"
    tensor.default_value.float_value = -1
    output = run(tmp_path, [encode([{"n": [i]} | ({"x": [0.5]} if i else {}) for i in range(30)])], features=features)
    assert (summary(output).features["x"].min, summary(output).features["x"].max) == (-1, 0.5)


def broken_population() -> list[Features]:
    """60 examples, three of which have NaN and one of these and another one infinity; an infinite weight feeds no model."""
    examples = population(60)
    for i in (3, 4, 5):
        examples[i]["image"] = [1.0] * 5 + [float("nan")]
    examples[5]["score"] = [float("-inf")]
    examples[8]["score"] = [float("inf")]
    examples[9]["weights"] = [1.0, float("-inf"), float("inf")]
    return [{"score": [0.5], **e} for e in examples]


WITH_SCORE = schema(image=("FLOAT", 2, 3), label=("INT",), name=("BYTES",), score=("FLOAT",), weights=("FLOAT", None))


@pytest.mark.parametrize("config", [UNIFORM, BY_LABEL, COVERAGE], ids=lambda c: c.strategy)
def test_examples_with_nan_or_infinity_are_left_out_and_counted_by_feature(config: CalibrationConfig, tmp_path: Path) -> None:
    config = config.model_copy(update={"num_examples": 56})
    output = run(tmp_path, [encode(broken_population())], config, WITH_SCORE)
    found = summary(output)
    assert found.population == 60
    assert found.non_finite == NonFiniteCounts(records=4, features={"image": 3, "score": 2})
    good = [e for i, e in enumerate(broken_population()) if i not in (3, 4, 5, 8)]
    assert set(sampled(output)) == ordered(encode(good))


def test_nan_and_infinity_are_an_error_that_counts_them_where_the_config_says_so(tmp_path: Path) -> None:
    config = UNIFORM.model_copy(update={"non_finite": "error"})
    text = failure(tmp_path, [encode(broken_population())], config=config, features=WITH_SCORE)
    assert text == (
        "split 'train': feature 'image' is NaN or infinite in 3, feature 'score' is NaN or infinite in 2 of the 60 examples; mend the data, "
        "or fill such values in Transform's preprocessing_fn, or set non_finite to 'drop'"
    )


def test_a_split_whose_every_example_has_nan_is_an_error_that_names_the_feature(tmp_path: Path) -> None:
    examples = [{**e, "image": [float("nan")] * 6} for e in population(40)]
    assert failure(tmp_path, [encode(examples)]) == (
        "split 'train': feature 'image' is NaN or infinite in 40 of the 40 examples; "
        "mend the data, or fill such values in Transform's preprocessing_fn"
    )


def test_a_coverage_sample_without_room_for_the_extremes_is_an_error(records: list[bytes], tmp_path: Path) -> None:
    text = failure(tmp_path, [records], config=COVERAGE.model_copy(update={"num_examples": 3}))
    assert text == (
        "num_examples 3: strategy 'coverage' keeps up to 2 examples for each of 2 numeric features; raise num_examples to 4 or more, "
        "or take strategy 'uniform'"
    )


def test_coverage_of_no_numeric_features_is_an_error(tmp_path: Path) -> None:
    text = failure(tmp_path, [encode([{"name": [b"a"]}])], config=COVERAGE, features=schema(name=("BYTES",)))
    assert text.startswith("strategy 'coverage': the schema has no numeric dense feature")


def test_a_record_that_is_no_example_is_an_error(tmp_path: Path) -> None:
    assert failure(tmp_path, [[b"not a tf.Example"]]).startswith("a record of the examples isn't a tf.Example")


def test_an_output_that_cannot_be_finished_is_removed(records: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "output" / "calibration.json").mkdir(parents=True)  # in the way of the last file
    with pytest.raises(Exception, match=r"calibration\.json"):
        run(tmp_path, [records])
    assert files(tmp_path) == {}


def test_a_component_without_transform_graph_and_schema_is_an_error_where_it_is_made() -> None:
    with pytest.raises(EdgeError, match="CalibrationGen: neither transform_graph nor schema is given"):
        CalibrationGen(examples=Channel(type=standard_artifacts.Examples))


def test_the_component_keeps_its_config_as_json() -> None:
    graph = Channel(type=standard_artifacts.TransformGraph)
    made = CalibrationGen(examples=Channel(type=standard_artifacts.Examples), transform_graph=graph, config=BY_LABEL)
    assert CalibrationConfig.from_json(made.exec_properties[keys.CONFIG]) == BY_LABEL
    assert made.outputs[keys.CALIBRATION_DATA].type is CalibrationData
    default = CalibrationGen(examples=Channel(type=standard_artifacts.Examples), transform_graph=graph)
    assert json.loads(default.exec_properties[keys.CONFIG]) == CalibrationConfig().model_dump()


def test_the_config_can_be_a_runtime_parameter() -> None:
    parameter = RuntimeParameter(name="calibration", ptype=str, default=UNIFORM.to_json())
    schema_channel = Channel(type=standard_artifacts.Schema)
    made = CalibrationGen(examples=Channel(type=standard_artifacts.Examples), schema=schema_channel, config=parameter)
    assert made.exec_properties[keys.CONFIG] is parameter
