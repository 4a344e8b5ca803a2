"""CompressionTuner: searches for the smallest or fastest edge model within a budget of accuracy.

component.py     inputs, outputs, config
executor.py      float model and data in; best model, its plan, hyperparameters and the table of trials out
space.py         what may be tried, as KerasTuner takes it
search.py        the loop: a proposal, its trial, what it is worth
trial.py         one trial: techniques to model, plan and flatbuffer
objective.py     what a flatbuffer costs, how good it is, and what that makes of a trial
trial_store.py   trials in a folder, so that a killed search goes on
"""
