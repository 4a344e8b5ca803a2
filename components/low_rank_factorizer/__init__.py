"""LowRankFactorizer: layers as products of thinner ones.

component.py   inputs, outputs, config
executor.py    model and transformed examples in, factorized model and its report out
"""
