"""EdgeValidator: the gate between an edge model and the devices.

component.py        what goes in and out, and how to use it
executor.py         artifacts in, artifacts out
gate.py             models, examples and config in, the verdict out
eval_config.py      the gate's config as TFMA's
slices.py           slices of the config against slices of the data
baseline.py         the float model, in whatever form it comes
raw_examples.py     raw examples, transformed as they are read, for a candidate that takes raw features
trial.py            the candidate's first load and run, in a process that may die
model_pair.py       float baseline and candidate, predicting the same batch
extractor.py        the pair as TFMA's prediction step
preprocessing.py    functions of the baseline's SavedModel, applied for both models
sample.py           a few of the examples, for what needs no more
evaluation.py       the Beam pipeline: examples, both models, TFMA
tfma_fixes.py       combiners of TFMA that count twice, mended
statistics/         what the examples say, one by one: paired differences and drift
intervals.py        how well a metric's difference is known
results.py          what TFMA and the comparison measured, by slice and metric
verdict.py          measurements to reasons against a blessing
certainty.py        drops that the data can't tell to be within their bound
drift_limits.py     predictions that moved too far
cost.py             size, operators, latency and memory against the budget
targets.py          the devices' own tools
layers.py           errors by operator, for the report
blessing.py         the ModelBlessing that Pusher reads
stock_evaluator.py  our prediction step in TFX's own Evaluator
"""
