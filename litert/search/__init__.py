"""Accuracy-aware quantization: the smallest model that loses no more than it may.

    evaluate = Evaluator(float_model, features, metric)
    found = search(float_model, config, config.accuracy_target, Maker(float_model, ranges), evaluate)
    found.config, found.met, found.trials

operators.py     the operators of a flatbuffer, and rules that name exactly these
making.py        a config to a flatbuffer, without doing twice what all configs share
evaluator.py     a flatbuffer to its metric and the noise of its outputs
trials.py        each candidate once, with what came of it
remedies.py      what is tried before any operator is given up
sensitivity.py   what each operator costs on its own
mixed.py         the smallest set of operators at higher precision
ladder.py        all of it in order

The float flatbuffer is converted once, before: a candidate costs the application of a recipe and one pass over the examples.
"""

from tfx_edge.litert.search.evaluator import Evaluator, Measured
from tfx_edge.litert.search.ladder import SearchResult, search
from tfx_edge.litert.search.making import Maker, PreparingMaker

__all__ = ["Evaluator", "Maker", "Measured", "PreparingMaker", "SearchResult", "search"]
