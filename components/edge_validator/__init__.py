"""EdgeValidator: the gate between an edge model and the devices.

component.py     what goes in and out, and how to use it
executor.py      artifacts in, artifacts out
gate.py          models, examples and config in, the verdict out
trial.py         the candidate's first load and run, in a process that may die
eval_config.py   the gate's config as TFMA's
model_pair.py    float baseline and candidate, predicting the same batch
extractor.py     the pair as TFMA's prediction step
evaluation.py    the Beam pipeline: examples, both models, TFMA
results.py       what TFMA measured, by slice and threshold
sizes.py         what the candidate weighs, and against the float flatbuffer
verdict.py       measurements to reasons against a blessing
blessing.py      the ModelBlessing that Pusher reads
"""
