"""The search space as KerasTuner takes it, and its oracles."""

from contextlib import ExitStack

import keras_tuner

from tfx_edge.schemas import OneOf, SearchConfig, TrialResult
from tfx_edge.schemas.search import Value

SCORE = "score"  # name of the number that the oracle minimizes


def hyperparameters(config: SearchConfig) -> keras_tuner.HyperParameters:
    """Every searched field by its path; those of an optional step count only where the step is taken."""
    space = keras_tuner.HyperParameters()
    for step in config.optional:
        space.Boolean(step)
    for path, choice in config.space.items():
        with ExitStack() as stack:
            for step in config.optional:
                if path.startswith(f"{step}."):
                    stack.enter_context(space.conditional_scope(step, [True]))
            if isinstance(choice, OneOf):
                space.Choice(path, list(choice.values))
            else:
                space.Float(path, choice.low, choice.high, sampling="log" if choice.log else "linear")
    return space


def make_oracle(config: SearchConfig) -> keras_tuner.Oracle:
    """What proposes trials; the same config and the same scores give the same proposals."""
    kind = {
        "random": keras_tuner.oracles.RandomSearchOracle,
        "bayesian": keras_tuner.oracles.BayesianOptimizationOracle,
        "grid": keras_tuner.oracles.GridSearchOracle,
    }[config.algorithm]
    oracle = kind(
        objective=keras_tuner.Objective(SCORE, "min"),
        max_trials=config.max_trials,
        hyperparameters=hyperparameters(config),
        seed=config.seed + 1,  # KerasTuner takes a seed of 0 for none
        max_consecutive_failed_trials=config.max_trials + 1,  # a row of failures is no reason to stop
    )
    oracle.verbose = 0  # it prints
    return oracle


def plain_values(trial: keras_tuner.engine.trial.Trial) -> dict[str, Value]:
    """The active values of a trial as Python's own types."""
    values = trial.hyperparameters.values
    return {name: value if isinstance(value, (bool, int, str)) else float(value) for name, value in values.items()}


def describe(result: TrialResult) -> str:
    """A trial's values on one line."""
    return ", ".join(f"{path}={value:.4g}" if isinstance(value, float) else f"{path}={value}" for path, value in result.values.items())
