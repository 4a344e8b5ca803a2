"""Runs one task. Exit status 0: done, whatever a gate decided; 1: it failed, and the last line on standard error says why."""

import os
import sys
import traceback

# Before anything imports TensorFlow: tfmot needs Keras 2.
os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")

from tfx_edge.kubeflow.entrypoint.light_imports import lighten
from tfx_edge.observability import log_as_asked
from tfx_edge.schemas import EdgeError


def main(arguments: list[str]) -> int:
    """Runs the task of a command line, and gives the exit status."""
    try:
        from tfx_edge.kubeflow.entrypoint.task import read_task

        task = read_task(arguments)
        lighten()
        from absl import logging

        logging.set_verbosity(logging.INFO)
        log_as_asked()
        from tfx_edge.kubeflow.entrypoint.run import run

        run(task)
    except EdgeError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except SystemExit as error:  # a component's own: what comes behind it would find nothing whole
        sys.stderr.write(f"error: the component ended the process by sys.exit({error.code!r}); raise an error instead\n")
        return error.code if isinstance(error.code, int) and error.code else 1
    except Exception as error:  # noqa: BLE001  # whatever a component's own code raises: its traceback belongs into the log
        traceback.print_exc()
        sys.stderr.write(f"error: {type(error).__name__}: {' '.join(str(error).split())[:1000]}\n")
        return 1
    return 0


if __name__ == "__main__":
    status = main(sys.argv[1:])
    sys.stdout.flush()
    sys.stderr.flush()
    sys.exit(status)
