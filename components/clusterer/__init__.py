"""Clusterer: lets the weights of a kernel share a few values while fine-tuning them.

component.py   inputs, outputs, config
executor.py    model and transformed examples in, clustered model and report out
"""
