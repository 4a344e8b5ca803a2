"""Executors for the entry point to run."""

import logging
import sys
import threading
import time
from pathlib import Path
from typing import Any, Dict, List, Optional  # noqa: UP035 - what TFX takes in annotations

from absl import logging as absl_logging
from tfx.dsl.component.experimental.annotations import OutputArtifact, Parameter
from tfx.dsl.component.experimental.decorators import component
from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types.standard_artifacts import Model

from tfx_edge.schemas import EdgeError


class Bless(BaseExecutor):
    """Names its input in a property of its output, as a gate does, and has a property that is a list."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        [model], [blessing] = input_dict["model"], output_dict["blessing"]
        blessing.set_string_custom_property("current_model", model.uri)
        blessing.set_string_custom_property("note", f"{model.uri}/part")
        blessing.set_json_value_custom_property("sizes", [1, 2])


class Refuse(BaseExecutor):
    """Fails as ours do where a user made a mistake."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        raise EdgeError("label_key 'x': no such feature")


class Break(BaseExecutor):
    """Fails as anybody's code may."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        raise ValueError("two\nlines")


class Hang(BaseExecutor):
    """Stops halfway, for somebody to end it; with `go_on`, writes all."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        [model] = output_dict["model"]
        Path(model.uri, "first").write_text("x")
        if not exec_properties["go_on"]:
            Path(model.uri, "half").write_text("x")
            print("halfway", flush=True)  # noqa: T201 - what the test waits for
            time.sleep(600)
        Path(model.uri, "second").write_text("x")


class Talk(BaseExecutor):
    """Logs in all the ways that components do."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        absl_logging.info("said by absl")
        logging.info("said by logging")
        thread = threading.Thread(target=logging.info, args=("said by the Trainer's user in a thread",))
        thread.start()
        thread.join()


class Leave(BaseExecutor):
    """Ends the process as if all were well."""

    def Do(self, input_dict: Any, output_dict: Any, exec_properties: Any) -> None:
        sys.exit(0)


@component
def Take(
    model: OutputArtifact[Model],
    total: int,  # another component's output, by value
    numbers: Parameter[List[int]],  # noqa: UP006
    names: Parameter[Dict[str, int]],  # noqa: UP006
    sure: Parameter[bool],
    word: Parameter[str],
    rest: Optional[int] = None,  # noqa: UP045
) -> None:
    model.set_string_custom_property("took", repr((total, numbers, names, sure, word, rest)))
