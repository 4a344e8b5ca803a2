"""Whether the gate judges damaged models rightly: 1,000 seeded damages, its verdicts against those of a plain loop.

A small classifier of two inputs as three flatbuffers: float, int8 inside with float inputs and outputs, and int8 throughout.
The examples' slices have sizes of which the allowed drop is a whole number of examples, so bounds are met exactly too.
"""

import os

os.environ.setdefault("TF_USE_LEGACY_KERAS", "1")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import functools
import json
import multiprocessing
import pickle
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from mutations import damage
from plain_verdict import Task, plain_verdicts

from benchmarks.figure import Figure

DAMAGES, WORKERS = 1000, 2
LOWER_BOUND, MAX_DROP, MIN_EXAMPLES = "0.8", "0.05", 20
_SLICES = (120, 100, 60, 20)
_WIDTH, _HIDDEN, _CLASSES = 4, 12, 3
# Flags that leave checks and caches out which only cost time here.
_BEAM_ARGS = ("--runner=DirectRunner", "--direct_running_mode=in_memory", "--no_pipeline_type_check", "--max_cache_memory_usage_mb=0")

FAILED = "the gate failed: "  # a dead pipeline, in place of reasons


@dataclass(frozen=True)
class Setting:
    """What all damages share.

    Attributes:
        models: sound flatbuffers by kind, of which all are blessed.
        task: float model, examples and bounds.
    """

    models: Mapping[str, bytes]
    task: Task

    def damaged(self, seed: int) -> tuple[str, bytes]:
        """What was done to which model, and what came of it."""
        kinds = sorted(self.models)
        description, model = damage(self.models[kinds[seed % len(kinds)]], seed)
        return f"{kinds[seed % len(kinds)]}: {description}", model


@dataclass(frozen=True)
class Judged:
    """One damage and both verdicts.

    Attributes:
        seed: of the damage.
        description: of the damage.
        gate: the gate's reasons against a blessing; none: blessed.
        plain: why the plain loop refuses it; None: blessed.
    """

    seed: int
    description: str
    gate: tuple[str, ...]
    plain: str | None

    @property
    def failed(self) -> bool:
        """Whether the gate gave no verdict at all."""
        return any(reason.startswith(FAILED) for reason in self.gate)

    @property
    def wrongly_blessed(self) -> bool:
        return not self.gate and self.plain is not None

    @property
    def wrongly_refused(self) -> bool:
        return bool(self.gate) and not self.failed and self.plain is None


def figures() -> Iterator[Figure]:
    """Wrong verdicts of each kind, and as a check that there was something to judge the share that was refused."""
    judged = compare(setting(), range(DAMAGES))
    for wrong in (j for j in judged if j.failed or j.wrongly_blessed or j.wrongly_refused):
        print(wrong, file=sys.stderr)
    for name, count in (
        ("wrong_blessings", sum(j.wrongly_blessed for j in judged)),
        ("wrong_refusals", sum(j.wrongly_refused for j in judged)),
        ("no_verdicts", sum(j.failed for j in judged)),
    ):
        yield Figure(f"mutations.{name}", count, f"of {len(judged)} damages", 0, "lower", (count, count), 1)
    share = sum(not j.gate for j in judged) / len(judged)
    for name, goal, better in (("blessed_share", 0.15, "higher"), ("blessed_share.at_most", 0.85, "lower")):
        yield Figure(f"mutations.{name}", share, "of all damages", goal, better, (share, share), 1)  # type: ignore[arg-type]


def compare(setting: Setting, seeds: Iterable[int], workers: int = WORKERS) -> list[Judged]:
    """Both verdicts on each damage, by seed; the gate's from worker processes, so that a death there is a finding too."""
    seeds = list(seeds)
    damaged = [setting.damaged(seed) for seed in seeds]
    plain = plain_verdicts([model for _, model in damaged], setting.task)
    with tempfile.TemporaryDirectory() as folder:
        gate = _gate_verdicts(Path(folder), setting, seeds, workers)
    return [Judged(seed, text, gate[seed], p) for seed, (text, _), p in zip(seeds, damaged, plain, strict=True)]


def setting() -> Setting:
    """Trains and converts."""
    data = _data()
    model = _train(data)
    converted = {"float": _convert(model), "int8_inside": _convert(model, data, "float32"), "int8": _convert(model, data, "int8")}
    return Setting(
        converted,
        Task(
            baseline=converted["float"],
            features={name: data[name] for name in ("x", "z")},
            labels=data["label"],
            slices=data["group"],
            lower_bound=LOWER_BOUND,
            max_drop=MAX_DROP,
            min_examples=MIN_EXAMPLES,
        ),
    )


def _data() -> dict[str, NDArray[Any]]:
    rng = np.random.default_rng(0)
    n = sum(_SLICES)
    x, z = rng.normal(size=(2, n, _WIDTH)).astype(np.float32)
    label = (x[:, :_CLASSES] + 0.7 * np.abs(z[:, :_CLASSES])).argmax(1)
    label = np.where(rng.random(n) < 0.05, rng.integers(_CLASSES, size=n), label)  # so that a change may also win examples
    group = rng.permutation(np.repeat(np.arange(len(_SLICES)), _SLICES))
    return {"x": x, "z": z, "label": label, "group": group}


def _train(data: Mapping[str, NDArray[Any]]) -> Any:
    import tf_keras

    tf_keras.utils.set_random_seed(0)
    inputs = [tf_keras.Input((_WIDTH,), name=name) for name in ("x", "z")]
    hidden = tf_keras.layers.Dense(_HIDDEN, activation="relu")(tf_keras.layers.Concatenate()(inputs))
    model = tf_keras.Model(inputs, tf_keras.layers.Dense(_CLASSES, activation="softmax", name="probabilities")(hidden))
    model.compile(tf_keras.optimizers.Adam(0.02), "sparse_categorical_crossentropy")
    model.fit([data["x"], data["z"]], data["label"], epochs=60, batch_size=64, verbose=0)
    return model


def _convert(model: Any, data: Mapping[str, NDArray[Any]] | None = None, ends: str = "float32") -> bytes:
    """Float, or with data to calibrate on int8 inside; `ends` is the type of inputs and outputs."""
    import tensorflow as tf

    converter = tf.lite.TFLiteConverter.from_keras_model(model)
    if data is not None:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([data["x"][i : i + 1], data["z"][i : i + 1]] for i in range(100))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
        converter.inference_input_type = converter.inference_output_type = tf.as_dtype(ends)
    flatbuffer: bytes = converter.convert()
    return flatbuffer


def _gate_verdicts(folder: Path, setting: Setting, seeds: Sequence[int], workers: int) -> dict[int, tuple[str, ...]]:
    (folder / "setting.pickle").write_bytes(pickle.dumps(setting))
    shares = [list(seeds[i::workers]) for i in range(workers)]
    context = multiprocessing.get_context("spawn")
    verdicts: dict[int, tuple[str, ...]] = {}
    while any(shares):
        processes = [context.Process(target=_judge_all, args=(folder, share, i)) for i, share in enumerate(shares) if share]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
        for log in folder.glob("*.jsonl"):
            verdicts.update((seed, tuple(reasons)) for seed, reasons in map(json.loads, log.read_text().splitlines()))
        shares = [[seed for seed in share if seed not in verdicts] for share in shares]
        for share in filter(None, shares):  # the one at which the process died
            verdicts[share.pop(0)] = (f"{FAILED}its process died",)
    return verdicts


def _judge_all(folder: Path, seeds: Sequence[int], number: int) -> None:
    _remember_signatures()
    setting: Setting = pickle.loads((folder / "setting.pickle").read_bytes())
    gate = Gate(Path(tempfile.mkdtemp(dir=folder)), setting.task)
    with (folder / f"{number}.jsonl").open("a") as log:
        for seed in seeds:
            print(json.dumps((seed, gate.reasons(setting.damaged(seed)[1]))), file=log, flush=True)


def _remember_signatures() -> None:
    """Beam asks for the parameters of the same functions tens of thousands of times a pipeline; a quarter of a verdict's time."""
    from apache_beam.transforms import core
    from apache_beam.typehints import decorators

    decorators.get_signature = core.get_signature = functools.lru_cache(4096)(decorators.get_signature)


class Gate:
    """The real gate on one task, with whatever verdicts have in common made once."""

    def __init__(self, folder: Path, task: Task) -> None:
        """Writes the examples and the baseline.

        Args:
            folder: an empty one.
            task: what to judge by.
        """
        from example_shards import example, examples_artifact, schema

        from tfx_edge.components.examples import split_sources
        from tfx_edge.schemas import GateConfig, Slice, Threshold

        self._folder = folder
        (folder / "baseline").mkdir()
        (folder / "baseline" / "tflite").write_bytes(task.baseline)
        columns = {**task.features, "label": task.labels, "group": task.slices}
        rows = [example({name: np.ravel(a[i]).tolist() for name, a in columns.items()}) for i in range(len(task.labels))]
        self._schema = schema(**{name: ({"f": "FLOAT", "i": "INT"}[a.dtype.kind], *a.shape[1:]) for name, a in columns.items()})
        self._sources = split_sources([examples_artifact(folder / "examples", {"eval": [rows]})], "eval", self._schema)
        self._config = GateConfig(
            label_key="label",
            thresholds=(Threshold(metric="SparseCategoricalAccuracy", lower_bound=float(task.lower_bound), max_drop=float(task.max_drop)),),
            slices=(Slice(feature_keys=("group",)),),
            min_examples=task.min_examples,
            batch_size=len(rows),
            layer_examples=0,
            time_limit_s=60,
        )

    def reasons(self, candidate: bytes) -> tuple[str, ...]:
        """The gate's reasons against a candidate; none: it is blessed."""
        import apache_beam as beam

        from tfx_edge.components.edge_validator.gate import Evidence, judge

        path = self._folder / "candidate"
        path.write_bytes(candidate)
        evidence = Evidence(str(path), str(self._folder / "baseline"), None, self._sources, self._schema)
        with tempfile.TemporaryDirectory(dir=self._folder) as evaluation:
            try:
                report = judge(evidence, self._config, beam.Pipeline(argv=list(_BEAM_ARGS)), evaluation)
            except Exception as error:  # noqa: BLE001 - a dead pipeline is what is looked for
                return (f"{FAILED}{type(error).__name__}: {error}"[:1000],)
        return report.reasons
