"""The functions that a user's module hands to a training."""

import pytest

from tfx_edge.components.user_module import load_user_module
from tfx_edge.schemas import EdgeError


def test_a_module_gives_the_functions_that_it_defines_and_no_others(tmp_path, monkeypatch):
    (tmp_path / "loss_of_this_test.py").write_text("def loss_fn():\n    return 7\n\nstudent_fn = 'no function'\n")
    monkeypatch.syspath_prepend(tmp_path)
    module = load_user_module("loss_of_this_test")
    assert module.loss_fn is not None and module.loss_fn() == 7
    assert module.dataset_fn is None and module.student_fn is None


@pytest.mark.parametrize(
    ("path", "text"),
    [("not_there.at_all", "not_there"), ("json", "defines none of dataset_fn, loss_fn, student_fn"), ("", "module_path ''")],
)
def test_a_module_that_cannot_help_is_refused_by_name(path, text):
    with pytest.raises(EdgeError, match=text) as error:
        load_user_module(path)
    assert "\n" not in str(error.value)
