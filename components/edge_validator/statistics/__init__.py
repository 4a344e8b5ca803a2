"""What a sample of examples says about the data behind it: differences with their uncertainty, and how far predictions drifted.

moments.py      a mean over examples, in a form that merges
paired.py       baseline and candidate on the same examples
estimates.py    moments to an interval and a p-value
decisions.py    is a bound cleared, how many examples would tell, Holm's correction
bootstrap.py    the same for metrics that are no means, from TFMA's bootstrap
per_example.py  a metric's value of each example, through its own function
slices.py       which examples of a batch are in which slice, by TFMA's rules
drift.py        flipped predictions and output errors
buffer.py       batches of predictions to partial results
compare.py      all of it as a step of the Beam pipeline
"""
