"""Examples in, calibration data out; the sampling is in `sampling`, what is written about the sample in `summary`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import apache_beam as beam
from absl import logging
from apache_beam.pvalue import AsDict
from tensorflow_metadata.proto.v0 import schema_pb2
from tfx.dsl.components.base.base_beam_executor import BaseBeamExecutor
from tfx.dsl.io import fileio
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from tfx_edge.components import examples, keys
from tfx_edge.components.beam_errors import clean_errors
from tfx_edge.components.calibration_gen import refusals
from tfx_edge.components.calibration_gen.artifact_files import SUMMARY, write
from tfx_edge.components.calibration_gen.bottom import HASH_BYTES
from tfx_edge.components.calibration_gen.coverage import plan_extremes
from tfx_edge.components.calibration_gen.records import KeyRecords, dense_features, require_feature
from tfx_edge.components.calibration_gen.sample import Draw, Outcome, Short
from tfx_edge.components.calibration_gen.sampling import sample
from tfx_edge.components.calibration_gen.summary import summarize
from tfx_edge.components.documents import read_bytes, write_bytes
from tfx_edge.components.observed import observed
from tfx_edge.schemas import CalibrationConfig, CalibrationSummary, EdgeError

_ATTEMPTS = 8  # at a sample without records of held-out splits; each draws twice as many as it needs
_HELD_OUT = "eval"  # where the config names no split


class Executor(BaseBeamExecutor):
    """Executes CalibrationGen."""

    @observed
    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Samples a split of `examples` into `calibration_data`.

        Raises:
            EdgeError: the input doesn't allow it; nothing is left in the output then.
        """
        config = CalibrationConfig.from_json(exec_properties[keys.CONFIG])
        schema = examples.transformed_schema(input_dict.get(keys.TRANSFORM_GRAPH, []), input_dict.get(keys.SCHEMA, []))
        dense = dense_features(schema)
        if config.stratify_by is not None:
            require_feature(config.stratify_by, schema)
        key = KeyRecords(dense, config.stratify_by, plan_extremes(dense, config).scores if config.strategy == "coverage" else None)
        artifacts = input_dict[keys.EXAMPLES]
        sources = examples.split_sources(artifacts, config.split, schema)
        held_out = {split: examples.split_sources(artifacts, split, schema) for split in held_out_splits(artifacts, config)}
        output = artifact_utils.get_single_instance(output_dict[keys.CALIBRATION_DATA])

        draw = Draw(config, drops=config.overlap == "drop" and bool(held_out))
        for attempt in range(_ATTEMPTS):
            short = f"{self._get_tmp_dir().rstrip('/')}/short-{attempt}" if draw.drops else ""
            with clean_errors(), self._make_beam_pipeline() as pipeline:
                outcome, non_finite = sample(pipeline, draw, key, sources, held_out)
                write_outcome = partial(
                    finish, held_out=tuple(held_out), config=config, schema=schema.SerializeToString(), uri=output.uri, short=short
                )
                _ = outcome | "Finish" >> beam.Map(write_outcome, AsDict(non_finite))
            if not (short and fileio.exists(short)):
                break
            draw = replace(draw, excluded=_split_hashes(read_bytes(short)))
        else:
            raise EdgeError(
                f"split {config.split!r}: {len(draw.excluded)} of the examples drawn are also in {', '.join(map(repr, held_out))}, too few "
                "others are left; mend the splits, or set overlap to 'warn'"
            )
        summary = CalibrationSummary.from_json(read_bytes(f"{output.uri}/{SUMMARY}"))
        _warn(summary)
        output.set_int_custom_property("count", summary.count)
        output.set_string_custom_property("strategy", config.strategy)
        output.set_string_custom_property("digest", summary.digest)


def held_out_splits(artifacts: Sequence[Artifact], config: CalibrationConfig) -> tuple[str, ...]:
    """The splits that the sample should have no record of; where the config leaves it open, "eval", if all examples have one."""
    if config.held_out is not None:
        return tuple(sorted(set(config.held_out)))
    there = all(_HELD_OUT in artifact_utils.decode_split_names(artifact.split_names or "[]") for artifact in artifacts)
    return (_HELD_OUT,) if there and config.split != _HELD_OUT else ()


def finish(
    outcome: Outcome,
    non_finite: Mapping[str, int],
    held_out: tuple[str, ...],
    config: CalibrationConfig,
    schema: bytes,
    uri: str,
    short: str,
) -> None:
    """Writes the artifact, or where too many of the records drawn are held out, the hashes of these.

    Args:
        outcome: of one attempt.
        non_finite: records left out, by feature, and under "" in all.
        held_out: splits that the sample was compared with.
        config: of the sample.
        schema: of the records, serialized.
        uri: of the artifact.
        short: the path for the hashes.

    Raises:
        EdgeError: what was drawn is no sample that `config` allows.
    """
    if isinstance(outcome, Short):
        write_bytes(short, b"".join(sorted(outcome.hashes)))
        return
    refusals.require_finite(non_finite, outcome.population, config)
    refusals.require_enough(outcome, non_finite, config)
    features = schema_pb2.Schema.FromString(schema)
    summary = summarize(outcome, non_finite, held_out, config, features)
    refusals.require_disjoint(summary.overlap, config)
    write(outcome.records, summary, features, uri)


def _split_hashes(content: bytes) -> frozenset[bytes]:
    return frozenset(content[i : i + HASH_BYTES] for i in range(0, len(content), HASH_BYTES))


def _warn(summary: CalibrationSummary) -> None:
    """Says in the log what was found wrong with the data and didn't stop the sampling."""
    config, left_out, overlap = summary.config, summary.non_finite, summary.overlap
    if left_out and left_out.records:
        counts = refusals.describe_non_finite({**left_out.features, "": left_out.records}, summary.population)
        logging.warning("CalibrationGen left %d records out of the sample: split %r, %s", left_out.records, config.split, counts)
    if overlap and overlap.found:
        what = "dropped from the sample" if config.overlap == "drop" else "kept in the sample"
        logging.warning("CalibrationGen: %s; %s", refusals.describe_overlap(overlap, config), what)
