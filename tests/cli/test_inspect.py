"""The commands on one flatbuffer, as a person at a terminal uses them."""

import json

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from click.testing import CliRunner
from tiny_flatbuffers import Graph, Op, Tensor, pack

from tfx_edge.cli import cli
from tfx_edge.device.selftest import FLATBUFFER, GOLDEN
from tfx_edge.litert.golden import golden_vectors
from tfx_edge.schemas import EdgeError
from tfx_edge.schemas.description import FlatbufferDescription


def dense(factor):
    x, y = Tensor("x", "float32", (None, 4)), Tensor("y", "float32", (None, 3))
    weights = Tensor("w", "float32", (3, 4), value=np.full((3, 4), factor, np.float32))
    return pack([Graph("serving_default", (x,), (y,), (Op("FULLY_CONNECTED", (x, weights, None), (y,), schema.FullyConnectedOptionsT()),))])


@pytest.fixture
def bundle(tmp_path):
    for name, content in ((FLATBUFFER, dense(1)), (GOLDEN, golden_vectors(dense(1)))):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(content)
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(cli, [str(a) for a in arguments])


def test_inspect_names_operators_tensors_signature_and_targets(bundle):
    text = run("inspect", bundle / FLATBUFFER).output
    for part in ("1 FULLY_CONNECTED", "x float32 [any, 4] to y float32 [any, 3]", "x_tensor FLOAT32 [-1, 4]", "edgetpu", "fixed batch"):
        assert part in text


def test_inspect_as_json_is_the_published_document(bundle):
    described = FlatbufferDescription.from_json(run("inspect", bundle / FLATBUFFER, "--json").output)
    assert described.size_bytes == len(dense(1)) and described.operators == {"FULLY_CONNECTED": 1}


@pytest.mark.parametrize(("what", "text"), [("missing", "No such file"), ("text", "not a LiteRT flatbuffer")])
def test_a_file_that_cannot_be_inspected_is_one_line(tmp_path, what, text):
    if what == "text":
        (tmp_path / what).write_text("hello")
    error = run("inspect", tmp_path / what).exception
    assert isinstance(error, EdgeError) and text in str(error) and "\n" not in str(error)


def test_selftest_passes_a_bundle_and_refuses_another_model_with_exit_status_2(bundle):
    assert run("selftest", bundle).exit_code == 0
    (bundle / FLATBUFFER).write_bytes(dense(1.1))
    failed = run("selftest", bundle, "--json")
    assert failed.exit_code == 2 and json.loads(failed.output)["outputs"][0]["passed"] is False
    (bundle / GOLDEN).unlink()
    assert "no edge/golden.npz" in str(run("selftest", bundle).exception)
