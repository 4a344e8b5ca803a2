"""A small model learns what a large one does.

algorithm.py   the steps: distill(teacher, dataset, config)
student.py     a narrower and shallower model of the teacher's graph
teaching.py    teacher and student as one model whose training trains the student
loss.py        what is asked of the student
"""

from tfx_edge.optimize.distillation.algorithm import distill
from tfx_edge.optimize.distillation.student import scaled_student

__all__ = ["distill", "scaled_student"]
