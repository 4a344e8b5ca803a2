"""ModelSelector: of several candidates that went through a gate each, the best blessed one.

component.py   inputs, outputs, config
executor.py    models, blessings and reports in, one model and its blessing out
selection.py   the choice and the front
"""
