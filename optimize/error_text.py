"""One line out of the many in which TensorFlow and Keras say what went wrong."""

import re

_PLACES = ("Graph execution error", "Detected at node", "File ", "in user code", "Traceback")
_NOISE = re.compile(r"\{\{.*?\}\}|\[Op:\w+\].*$|\[\[.*?\]\]")


def one_line(error: Exception) -> str:
    r"""The line that names the fault and not its place in a graph or a source file, without the marks of operations.

    >>> one_line(ValueError("in user code:\n\n    File \"layer.py\", line 7\n    TypeError: no argument 'mask'\n"))
    "TypeError: no argument 'mask'"
    """
    lines = [line for line in (_NOISE.sub("", raw).strip() for raw in str(error).splitlines()) if line]
    telling = [line for line in lines if not line.startswith(_PLACES)]
    raised = [line for line in telling if re.match(r"\w+Error: ", line)]
    return (raised[-1:] or telling or lines or [type(error).__name__])[0][:300]
