"""The phases of a training and the steps that they take."""

from dataclasses import dataclass

import tensorflow as tf

from tfx_edge.optimize.error_text import one_line
from tfx_edge.optimize.fine_tuning.data_checks import check_dataset
from tfx_edge.optimize.fine_tuning.order import hold_out
from tfx_edge.schemas import EdgeError, FineTuningConfig


@dataclass(frozen=True)
class PhaseEpochs:
    """Epochs `start` to `stop` - 1, counted from 0, with one batch size."""

    start: int
    stop: int
    batch_size: int


def phase_epochs(config: FineTuningConfig) -> tuple[PhaseEpochs, ...]:
    """The phases' epochs: their shares rounded, at least one each; with a checkpoint each epoch by itself.

    >>> from tfx_edge.schemas import Phase
    >>> phases = (Phase(share=0.2, batch_size=8), Phase(share=0.8, batch_size=32))
    >>> phase_epochs(FineTuningConfig(label_key="y", epochs=5, phases=phases))
    (PhaseEpochs(start=0, stop=1, batch_size=8), PhaseEpochs(start=1, stop=5, batch_size=32))
    """
    phases = _phases(config)
    if config.checkpoint_dir is None:
        return phases
    # One by one, for then the order of the examples and all that is drawn depend on the epoch alone, not on where training went on.
    return tuple(PhaseEpochs(epoch, epoch + 1, phase.batch_size) for phase in phases for epoch in range(phase.start, phase.stop))


def _phases(config: FineTuningConfig) -> tuple[PhaseEpochs, ...]:
    if not config.phases:
        return (PhaseEpochs(0, config.epochs, config.batch_size),)
    phases, start, share = [], 0, 0.0
    for i, phase in enumerate(config.phases):
        share += phase.share
        left = len(config.phases) - 1 - i
        stop = min(max(round(share * config.epochs), start + 1), config.epochs - left)
        phases.append(PhaseEpochs(start, stop, phase.batch_size))
        start = stop
    return tuple(phases)


def count_steps(dataset: tf.data.Dataset, config: FineTuningConfig) -> int:
    """How many steps `fine_tune` will take if nothing stops it; reads the dataset once where its size isn't known.

    Args:
        dataset: all that `fine_tune` gets as its dataset, where it gets no validation examples.
        config: the one that `fine_tune` gets.

    Raises:
        EdgeError: the dataset is empty, endless or can't be read.
    """
    check_dataset(dataset, "training")
    return steps_of(count_examples(hold_out(dataset, config)[0], config), config)


def steps_of(examples: int, config: FineTuningConfig) -> int:
    """How many steps as many examples make."""
    return sum((phase.stop - phase.start) * -(-examples // phase.batch_size) for phase in phase_epochs(config))


def count_examples(dataset: tf.data.Dataset, config: FineTuningConfig) -> int:
    """How many examples there are; see `count_steps`."""
    examples = int(dataset.cardinality())
    if examples == tf.data.INFINITE_CARDINALITY:
        raise EdgeError("the training examples never end; expected one pass over them; leave out repeat()")
    if examples == tf.data.UNKNOWN_CARDINALITY:
        try:
            examples = int(dataset.reduce(tf.constant(0, tf.int64), lambda count, *_: count + 1))
        except tf.errors.OpError as error:
            raise EdgeError(f"the training examples can't be read: {one_line(error)}; mend or remake them") from error
    if not examples:
        raise EdgeError(f"split {config.split!r}: no examples to train on; expected at least one")
    return examples
