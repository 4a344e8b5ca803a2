"""Pruner: makes the smallest weights of a model zero while fine-tuning it.

component.py   inputs, outputs, config
executor.py    model and transformed examples in, pruned model and sparsity report out
"""
