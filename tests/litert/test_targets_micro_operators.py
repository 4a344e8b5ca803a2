"""The table of TensorFlow Lite Micro's operators, against its real interpreter."""

import re
import subprocess
from pathlib import Path

import pytest
from ai_edge_litert import schema_py_generated as schema
from target_models import model, needs_tools
from tiny_flatbuffers import Op, Tensor

from tfx_edge.litert.targets import side
from tfx_edge.litert.targets.micro_operators import OPERATORS, registration, registrations
from tfx_edge.schemas import EdgeError

# Loads each file of the folder in a fork, since a model of one operator with the wrong inputs may end the process.
_LOAD_ALL = """
import contextlib, os, pathlib, sys
from tflite_micro import runtime
for path in sorted(pathlib.Path().glob("*.tflite")):
    print("MODEL", path.stem, file=sys.stderr, flush=True)
    if not os.fork():
        with contextlib.suppress(Exception):
            runtime.Interpreter.from_file(str(path), arena_size=100000)
        os._exit(0)
    os.wait()
"""


def python() -> Path:
    found = side.find_python("tflite_micro")
    assert found is not None
    return found


@needs_tools
def test_the_operators_are_those_that_the_interpreter_finds(tmp_path: Path) -> None:
    every = {name for name, code in vars(schema.BuiltinOperator).items() if isinstance(code, int) and not name.startswith("_")} - {"CUSTOM"}
    x, y = Tensor("x", "float32", (1, 4)), Tensor("y", "float32", (1, 4))
    for name in every:
        (tmp_path / f"{name}.tflite").write_bytes(model((x,), (y,), [Op(name, (x,), (y,))]))
    told = subprocess.run([python(), "-c", _LOAD_ALL], cwd=tmp_path, capture_output=True, text=True, check=True).stderr
    parts = dict(part.split("\n", 1) for part in told.split("MODEL ")[1:])
    assert parts.keys() == every
    assert {name for name, messages in parts.items() if "Didn't find op for builtin opcode" not in messages} == OPERATORS


@needs_tools
def test_the_methods_are_spelled_as_the_interpreters_own_functions() -> None:
    # The resolver's methods are templates and leave no name in the library; the parser that each hands over mostly has the same.
    code = "import tflite_micro.python.tflite_micro._runtime as r; print(r.__file__)"
    library = Path(subprocess.run([python(), "-c", code], capture_output=True, text=True, check=True).stdout.strip()).read_bytes()
    parsers = {name.decode() for name in re.findall(rb"\d+Parse(\w+?)EPKNS_8OperatorE", library)}
    shared = {"Pool": {"AddAveragePool2D", "AddL2Pool2D", "AddMaxPool2D"}, "Cumsum": {"AddCumSum"}}
    shared["Reducer"] = {"AddMean", "AddReduceAll", "AddReduceMax", "AddReduceMin", "AddSum"}
    assert shared.keys() <= parsers
    assert {str(registration(name)) for name in OPERATORS} - {f"Add{name}" for name in parsers} == set().union(*shared.values())


def test_all_operators_that_are_missing_are_named_and_those_alone() -> None:
    assert registrations(["SOFTMAX", "CONV_2D", "SOFTMAX"]) == ["AddConv2D", "AddSoftmax"]
    with pytest.raises(EdgeError, match="^TensorFlow Lite Micro has no operator SIGN, TOPK_V2, custom:FlexErf; replace"):
        registrations(["TOPK_V2", "SOFTMAX", "custom:FlexErf", "SIGN"])
