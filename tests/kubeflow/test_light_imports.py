"""Modules that run later: the mechanism on small ones, and TFX's own components behind it."""

import importlib
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tfx_edge.kubeflow.entrypoint import light_imports

LOG: list[str] = []
"""What the small modules below write to."""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Packages with a submodule each, all of which run later; of `both`, the submodule too."""
    LOG.clear()
    tell = "import builtins; builtins.tell_light_imports(__name__)\n"
    for package, init in (
        ("closed", "from closed import part\nvalue, __version__ = 1, '2.0'\n"),
        ("open_one", "value = 1\n"),
        ("failing", "raise OSError('no disk')\n"),
        ("both", "from both.part import name as value\n"),
    ):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(tell + init)
        (tmp_path / package / "part.py").write_text(tell + "name = __name__\n")
    for name in ("_LATER", "_OPEN"):
        monkeypatch.setattr(light_imports, name, {"closed", "failing", "both", "both.part"} if name == "_LATER" else {"open_one"})
    monkeypatch.setattr("builtins.tell_light_imports", LOG.append, raising=False)
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    monkeypatch.syspath_prepend(str(tmp_path))
    light_imports.lighten()
    return tmp_path


@pytest.mark.usefixtures("modules")
def test_a_module_runs_once_when_it_is_asked_for_a_name() -> None:
    closed: Any = importlib.import_module("closed")
    assert closed.__name__ == "closed" and LOG == []
    assert closed.value == 1 and closed.__version__ == "2.0" and closed.part.name == "closed.part"
    assert LOG == ["closed", "closed.part"]
    assert not hasattr(closed, "nothing") and LOG == ["closed", "closed.part"]


@pytest.mark.usefixtures("modules")
def test_a_version_alone_and_a_listing_of_names_run_it() -> None:
    assert importlib.import_module("closed").__version__ == "2.0" and LOG[0] == "closed"
    assert "value" in dir(importlib.import_module("open_one"))


@pytest.mark.usefixtures("modules")
def test_a_submodule_runs_its_package_first_unless_it_stands_for_itself() -> None:
    part = importlib.import_module("closed.part")
    assert LOG == ["closed", "closed.part"] and importlib.import_module("closed").part is part
    assert part.__spec__ is not None and part.__spec__.origin == part.__file__
    importlib.import_module("open_one.part")
    assert LOG[2:] == ["open_one.part"]
    exec("from open_one import part, value", {})
    assert LOG[2:] == ["open_one.part", "open_one"]


@pytest.mark.usefixtures("modules")
def test_a_submodule_that_runs_later_itself_runs_behind_its_package() -> None:
    part: Any = importlib.import_module("both.part")
    exec("from both import part", {})
    assert LOG == []
    assert part.name == "both.part" and LOG == ["both", "both.part"]
    assert sys.modules["both"].value == "both.part" and LOG == ["both", "both.part"]


@pytest.mark.usefixtures("modules")
def test_a_module_that_fails_says_so_each_time() -> None:
    failing: Any = importlib.import_module("failing")
    for _ in range(2):
        with pytest.raises(OSError, match="no disk"):
            failing.value  # noqa: B018
    assert LOG == ["failing", "failing"]


def test_a_second_thread_waits_until_the_module_has_run(modules: Path) -> None:
    (modules / "closed/__init__.py").write_text("import builtins, time\nbuiltins.begun.set()\ntime.sleep(0.3)\nvalue = 1\n")
    closed: Any = importlib.import_module("closed")
    begun, found = threading.Event(), []
    import builtins

    builtins.begun = begun  # type: ignore[attr-defined]
    first = threading.Thread(target=lambda: found.append(closed.value))
    first.start()
    begun.wait(10)
    found.append(closed.value)
    first.join()
    del builtins.begun  # type: ignore[attr-defined]
    assert found == [1, 1]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a fresh process with all of TFX's executors finds."""
    code = """
import contextlib, importlib, json, pkgutil, sys
from tfx_edge.kubeflow.entrypoint.light_imports import lighten
lighten()
found = {}
from tfx.types import standard_component_specs
from tensorflow_model_analysis import sdk
early = sdk.EvalConfig
found["for specifications"] = [name for name in HEAVY if name in sys.modules]
import tfx.components.trainer.executor, tfx.components.schema_gen.executor, tfx.components.pusher.executor
import tfx_edge.components.pruner.executor
found["for executors"] = [name for name in HEAVY if name in sys.modules]
import tensorflow_model_analysis.metrics
found["for metrics"] = [name for name in HEAVY if name in sys.modules and not name.startswith("tensorflow_model_analysis")]
import tfx.orchestration.kubeflow.v2.file_based_example_gen.driver
executors = [
    module.name
    for module in pkgutil.walk_packages(tfx.components.__path__, "tfx.components.")
    if not module.ispkg and module.name.endswith(".executor")
]
for name in executors:
    importlib.import_module(name)
found["executors"] = executors
import tensorflow_data_validation as tfdv
import tensorflow_model_analysis as tfma
found["libraries"] = [
    tfdv.StatsOptions.__name__, tfma.VERSION_STRING == sdk.VERSION_STRING, sdk.EvalConfig is early, tfma.view.render_plot.__name__,
]
import google.cloud.bigquery, google.cloud.pubsub, keras, scipy.stats
from rouge_score import rouge_scorer
from IPython.display import HTML
import IPython
found["ran later"] = [
    google.cloud.bigquery.Client.__name__, google.cloud.pubsub.PublisherClient.__name__, keras.layers.Dense.__name__,
    HTML.__name__, IPython.get_ipython.__name__, scipy.stats.t.name, keras.__version__[:2],
    rouge_scorer.RougeScorer(["rouge1"], use_stemmer=True).score("running far", "runs far")["rouge1"].recall
]
print(json.dumps(found))
"""
    heavy = (
        "google.cloud.aiplatform",
        "google.cloud.bigquery.client",
        "IPython.terminal",
        "keras.src",
        "kfp.dsl",
        "nltk.corpus",
        "scipy.stats.distributions",
    )
    heavy += ("tensorflow_model_analysis.api", "tfx.components.evaluator.executor")
    code = f"HEAVY = {heavy!r}\n{code}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], cwd=tmp_path_factory.mktemp("process"), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def test_a_tasks_executor_comes_without_what_it_doesnt_need(process: dict[str, Any]) -> None:
    assert process["for specifications"] == process["for executors"] == process["for metrics"] == []


def test_every_executor_of_tfx_imports_behind_it(process: dict[str, Any]) -> None:
    names = {name.removeprefix("tfx.components.").removesuffix(".executor") for name in process["executors"]}
    assert names >= {
        "bulk_inferrer", "distribution_validator", "evaluator", "example_gen.csv_example_gen", "example_gen.import_example_gen",
        "example_validator", "infra_validator", "pusher", "schema_gen", "statistics_gen", "trainer", "transform", "tuner",
    }  # fmt: skip


def test_libraries_that_run_later_are_whole_when_they_are_asked_for(process: dict[str, Any]) -> None:
    assert process["libraries"] == ["StatsOptions", True, True, "render_plot"]
    assert process["ran later"] == ["Client", "PublisherClient", "Dense", "HTML", "get_ipython", "t", "3.", 1.0]
