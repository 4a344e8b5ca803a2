"""Edge preparation: layers that block the device or a technique, rewritten into equal ones that don't.

algorithm.py   the steps: refuse, flatten, rewrite, compare
rules.py       which layer becomes which
recurrent.py   short loops unrolled
refusals.py    layers that no device runs, each with its cure
"""

from tfx_edge.optimize.preparation.algorithm import prepare

__all__ = ["prepare"]
