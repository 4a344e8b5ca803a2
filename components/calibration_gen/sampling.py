"""One attempt at a sample: reads the split and the ones that are held out, and lets the strategy draw."""

from collections.abc import Mapping, Sequence

import apache_beam as beam
from apache_beam.pvalue import PCollection
from tfx_bsl.tfxio import tfxio

from tfx_edge.components import examples
from tfx_edge.components.calibration_gen.combining import combine_each
from tfx_edge.components.calibration_gen.coverage import coverage
from tfx_edge.components.calibration_gen.records import NON_FINITE, KeyRecords
from tfx_edge.components.calibration_gen.sample import TO_DRAW, Draw, Keyed, Outcome
from tfx_edge.components.calibration_gen.stratified import stratified
from tfx_edge.components.calibration_gen.uniform import uniform

_STRATEGIES = {"uniform": uniform, "stratified": stratified, "coverage": coverage}


def sample(
    pipeline: beam.Pipeline, draw: Draw, key: KeyRecords, sources: Sequence[tfxio.TFXIO], held_out: Mapping[str, Sequence[tfxio.TFXIO]]
) -> tuple[PCollection[Outcome], PCollection[tuple[str, int]]]:
    """Draws a sample.

    Args:
        pipeline: to draw in.
        draw: what is asked for.
        key: puts before a record what the strategy goes by.
        sources: of the split to sample.
        held_out: sources of the splits that it is compared with.

    Returns:
        One `Outcome`, and the counts of records with NaN or infinity by feature, and under "" in all.
    """
    non_finite = []

    def read(label: str) -> list[PCollection[Keyed]]:
        parts = []
        for i, records in enumerate(examples.read_examples(pipeline, sources, f"Read{label}")):
            keyed = records | f"Key{label}[{i}]" >> beam.ParDo(key).with_outputs(NON_FINITE, main="finite")
            if label == TO_DRAW:
                non_finite.append(keyed[NON_FINITE] | f"Features{label}[{i}]" >> beam.FlatMap(_by_feature))
            parts.append(keyed["finite"])
        return parts

    compared = {split: examples.read_examples(pipeline, of_split, f"ReadHeldOut[{split}]") for split, of_split in held_out.items()}
    outcome = _STRATEGIES[draw.config.strategy](read, compared, draw)
    return outcome, combine_each("NonFinite", non_finite, beam.combiners.CountCombineFn(), per_key=True)


def _by_feature(names: tuple[str, ...]) -> list[tuple[str, int]]:
    return [(name, 1) for name in ("", *names)]
