"""From shares of the training to tfmot's steps, so that the last update of the masks is at the target."""

import tensorflow_model_optimization as tfmot

from tfx_edge.schemas import ConstantSparsity, PolynomialDecay


def schedule_in_steps(
    schedule: PolynomialDecay | ConstantSparsity, target: float, steps: int, calls: int = 1
) -> tfmot.sparsity.keras.PruningSchedule:
    """Places a schedule on the steps of one training.

    tfmot counts a layer's steps from 1 and updates its masks every `frequency` steps from the first on, but not past the
    last: a last step that the frequency misses leaves the sparsity below the target. So the first step is moved, by less
    than one frequency, such that an update falls on the last.

    Args:
        schedule: its begin and end are shares of all steps.
        target: the sparsity to reach.
        steps: of the whole training, at least 1.
        calls: how often the model calls the layer; tfmot counts each as a step.

    Returns:
        A schedule whose last update is at the target sparsity, at or before the last step.
    """
    total, frequency = steps * calls, schedule.frequency * calls
    begin = min(total, 1 + int(schedule.begin * total))
    if isinstance(schedule, ConstantSparsity):
        return tfmot.sparsity.keras.ConstantSparsity(target, begin_step=begin, frequency=frequency)
    end = max(begin, round(schedule.end * total))
    if begin == end:  # too few steps for a decay, whose length tfmot would divide by
        return tfmot.sparsity.keras.ConstantSparsity(target, begin_step=begin, end_step=end, frequency=1)
    frequency = min(frequency, end - begin)
    return tfmot.sparsity.keras.PolynomialDecay(
        schedule.initial_sparsity,
        target,
        begin_step=end - (end - begin) // frequency * frequency,
        end_step=end,
        power=schedule.power,
        frequency=frequency,
    )
