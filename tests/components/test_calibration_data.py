"""Whether calibration data fit a model, by schema and signature alone."""

import pytest
from example_shards import example, schema
from exporting import calibration_artifact

from tfx_edge.components.calibration_data import Calibration, read_calibration
from tfx_edge.schemas import EdgeError, Signature, TensorSpec

FEATURES = schema(mass=("FLOAT",), image=("FLOAT", 2, 3), species=("INT",), name=("BYTES",), tags=("INT", None))


@pytest.fixture(scope="module")
def calibration(tmp_path_factory: pytest.TempPathFactory) -> Calibration:
    row = example({"mass": [1.0], "image": [0.0] * 6, "species": [1], "name": [b"a"]})
    return read_calibration([calibration_artifact(tmp_path_factory.mktemp("calibration") / "data", [[row]], FEATURES)])


def signature(**inputs: tuple[str, tuple[int | None, ...]]) -> Signature:
    return Signature(inputs=tuple(TensorSpec(name=n, dtype=d, shape=(None, *s)) for n, (d, s) in inputs.items()), outputs=())


@pytest.mark.parametrize(
    "inputs",
    [
        {"mass": ("float32", (1,)), "image": ("float32", (2, 3))},
        {"image": ("float32", (3, 2, 1)), "species": ("int32", ())},
        {"species": ("float32", (1,))},  # integers are floats too
        {"image": ("float32", (None, 3))},
    ],
    ids=str,
)
def test_features_that_can_feed_the_inputs_pass(calibration: Calibration, inputs: dict) -> None:
    calibration.check(signature(**inputs))


@pytest.mark.parametrize(
    ("inputs", "text"),
    [
        (
            {"Mass": ("float32", (1,))},
            "no feature 'Mass', the model's input takes (1,) of float32; the dense features are 'image', 'mass', 'name', 'species'",
        ),
        (
            {"tags": ("int64", (4,))},
            "no feature 'tags', the model's input takes (4,) of int64; the dense features are 'image', 'mass', 'name', 'species'",
        ),
        ({"image": ("float32", (3, 3))}, "feature 'image': an example has (2, 3) of float32, the model's input takes (3, 3) of float32"),
        ({"mass": ("int32", (1,))}, "feature 'mass': an example has () of float32, the model's input takes (1,) of int32"),
        ({"name": ("float32", ())}, "feature 'name': an example has () of string, the model's input takes () of float32"),
        (
            {"mass": ("float32", (2,)), "species": ("int64", (1,)), "image": ("int8", (2, 3))},
            "feature 'mass': an example has () of float32, the model's input takes (2,) of float32; "
            "feature 'image': an example has (2, 3) of float32, the model's input takes (2, 3) of int8",
        ),
    ],
    ids=str,
)
def test_a_feature_that_cannot_feed_an_input_is_an_error_with_both_sides(calibration: Calibration, inputs: dict, text: str) -> None:
    with pytest.raises(EdgeError) as caught:
        calibration.check(signature(**inputs))
    assert str(caught.value) == f"{calibration.name}: {text}; give the model the features that it was trained on, by its inputs' names"
