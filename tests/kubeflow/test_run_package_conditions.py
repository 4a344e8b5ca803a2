"""Conditions on their own: CEL, as far as TFX and KFP's compiler write it."""

import pytest

from tfx_edge.kubeflow.local_run import cel
from tfx_edge.schemas import EdgeError

INPUTS = {
    "parameter_values": {"n": 3.0, "s": "heads", "on": True, "names": ["a"]},
    "artifacts": {"b": {"artifacts": [{"uri": "s3://x", "metadata": {"blessed": 1.0, "name": "o'k"}}]}},
}
N, S, B = "inputs.parameter_values['n']", "inputs.parameter_values['s']", "inputs.artifacts['b'].artifacts[0]"


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        # what KFP's compiler writes
        (f"int({N}) > 2", True),
        (f"{S} == 'heads'", True),
        (f"!({S} == 'heads') && int({N}) > 2", False),
        ("inputs.parameter_values['on'] == true", True),
        ("inputs.parameter_values['on'] == 1", False),  # a bool is no number
        # what TFX's runner writes
        (f"({B}.metadata['blessed'] == 1.0)", True),
        (f"!(({B}.metadata['blessed'] < 1.0))", True),
        (f"(({B}.uri + '/y') == 's3://x/y')", True),
        (f"({B}.metadata['blessed'] == 1.0) && ({B}.metadata['name'] == 'o\\'k')", True),
        ("((1.0 < 2.0) || (1.0 > 2.0))", True),
        # precedence, and errors that the other side makes irrelevant
        ("true || false && false", True),
        ("inputs.parameter_values['missing'] == 1 || true", True),
        ("false && inputs.parameter_values['missing'] == 1", False),
        (f"{S} == 3", False),
        (f"{S} != 3", True),
        (f"double('2.5') < {N} && string({N}) == '3' && -1.0 < 0", True),
    ],
)
def test_conditions_hold_as_in_cel(text, holds):
    assert cel.parse(text).holds(INPUTS) is holds


@pytest.mark.parametrize(
    "text",
    [
        f"{S} < 3",
        "inputs.parameter_values['missing'] == 1",
        f"{B}.metadata['no'] == 1.0",
        f"{N}",
        f"{S} && true",
        "inputs.artifacts['b'].artifacts[1].uri == ''",
    ],
)
def test_conditions_that_cel_cant_evaluate_are_errors(text):
    with pytest.raises(cel.ConditionError):
        cel.parse(text).holds(INPUTS)


@pytest.mark.parametrize(
    "text", ["", "inputs", "inputs.foo['x']", "x == 1", "1 ==", "(true", "true true", "a.all(x, x)", "1 ? 2 : 3", "'open"]
)
def test_anything_else_is_refused(text):
    with pytest.raises(EdgeError, match="can't read"):
        cel.parse(text)
