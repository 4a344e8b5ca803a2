"""ModelImporter: starts a pipeline from a model that was trained elsewhere.

component.py   path in
executor.py    any model file in, Model artifact in the suite's form out
"""
