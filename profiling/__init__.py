"""Where the time and the memory of a piece of work go, for whoever runs it: `--profile FOLDER`, `TFX_EDGE_PROFILE=FOLDER`.

profile.py     all of it around a piece of work, and the files, whole or not at all
flame.py       flame.html: which calls the time goes to
lines.py       lines.txt: which lines of the hot functions
hot.py         the hot functions
memory.py      memory.txt: the peak, what held it, what grew
tensorflow.py  tensorflow/: TensorFlow's own profile, for TensorBoard
"""

from tfx_edge.profiling.profile import profiled

__all__ = ["profiled"]
