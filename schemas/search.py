"""CompressionTuner: what is tried, what counts as best, and what came of every trial."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from tfx_edge.schemas.clustering import ClusteringConfig
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.distillation import DistillationConfig
from tfx_edge.schemas.errors import ConfigError
from tfx_edge.schemas.low_rank import LowRankConfig
from tfx_edge.schemas.pruning import PruningConfig
from tfx_edge.schemas.qat import QatConfig
from tfx_edge.schemas.schemes import CALIBRATED
from tfx_edge.schemas.techniques import Techniques
from tfx_edge.schemas.thresholds import Threshold

Value = StrictBool | StrictInt | StrictFloat | StrictStr


class Between(Config):
    """Any number from low to high; a grid takes ten of them."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind", "low", "high"]})  # in a document it tells the kinds apart

    kind: Literal["between"] = "between"
    low: float = Field(description="The smallest.")
    high: float = Field(description="The largest.")
    log: bool = Field(default=False, description="Every ratio is as likely as another, as for a learning rate; else every difference.")

    def check(self) -> None:
        if self.low >= self.high:
            raise ValueError(f"low {self.low} must be less than high {self.high}")
        if self.log and self.low <= 0:
            raise ValueError(f"low {self.low} must be more than 0 with log")


class OneOf(Config):
    """One of the values given."""

    model_config = ConfigDict(json_schema_extra={"required": ["kind", "values"]})  # in a document it tells the kinds apart

    kind: Literal["one_of"] = "one_of"
    values: tuple[StrictInt, ...] | tuple[StrictFloat, ...] | tuple[StrictStr, ...] = Field(
        min_length=1, description="Numbers, best in ascending order, or texts."
    )

    def check(self) -> None:
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"values {self.values} name one twice; name it once")


class SearchConfig(Config):
    """The smallest or fastest edge model within a budget of accuracy, over any fields of `Techniques`.

    >>> from tfx_edge.schemas import OneOf, SearchConfig, Techniques, Threshold
    >>> search = SearchConfig(
    ...     techniques=Techniques(),
    ...     space={"quantization.scheme": OneOf(values=("float16", "dynamic_range"))},
    ...     label_key="label",
    ...     threshold=Threshold(metric="SparseCategoricalAccuracy", max_drop=0.01),
    ... )
    >>> search.may_calibrate
    False
    """

    techniques: Techniques = Field(description="What every trial starts from: the steps, and their fields that aren't searched.")
    space: dict[str, Annotated[Between | OneOf, Field(discriminator="kind")]] = Field(
        default={}, description="Fields of techniques by their path, such as pruning.target_sparsity, to what they may be."
    )
    optional: tuple[str, ...] = Field(
        default=(), description="Paths of steps that a trial may leave out: distillation, low_rank, pruning, clustering, quantization.qat."
    )
    objective: Literal["gzip_bytes", "size_bytes", "latency_ratio"] = Field(
        default="gzip_bytes",
        description="What the best trial has least of. latency_ratio: of one prediction, to the float flatbuffer's, on this machine.",
    )
    label_key: str = Field(min_length=1, description="The transformed feature that holds the label.")
    threshold: Threshold = Field(
        description="A metric of Keras, and its max_drop: how much worse than the float model a trial may be and still win."
    )
    split: str = Field(default="eval", min_length=1, description="The split that the metric is measured on.")
    examples: int | None = Field(default=None, ge=1, description="How many of its first examples; None: all.")
    algorithm: Literal["random", "bayesian", "grid"] = Field(
        default="bayesian", description="KerasTuner's. bayesian: at random first, three times as often as there are dimensions."
    )
    max_trials: int = Field(default=20, ge=1, description="Trials, those that fail included.")
    time_limit_s: float | None = Field(default=None, gt=0, description="No trial is begun after this many seconds.")
    seed: int = Field(default=0, ge=0, lt=2**31 - 1, description="Of the search, and of what techniques draw at random.")
    num_threads: int = Field(default=1, ge=1, description="With latency_ratio: threads of a prediction.")
    trials_dir: str | None = Field(
        default=None,
        min_length=1,
        description="A folder that outlives the search: killed and started again, it goes on behind its last whole trial.",
    )

    def check(self) -> None:
        if self.techniques.quantization.accuracy_target is not None:
            raise ValueError("techniques.quantization.accuracy_target: this search keeps to its own threshold; leave it out")
        if self.techniques.quantization.conversion.signatures:
            raise ValueError("techniques.quantization.conversion.signatures: a trial changes the Keras model itself; leave them out")
        if not self.space and not self.optional:
            raise ValueError("space and optional are empty, so there is one trial; name what to search")
        self._check_threshold()
        for path in self.optional:
            with_values(self.techniques, {path: False})
        for path in self.space:
            for value in _ends(self.space[path]):
                self._check_fits(path, value)
        for path, step in _steps(self.techniques).items():
            if (folder := step.fine_tuning.checkpoint_dir) is not None:
                raise ValueError(f"techniques.{path}.fine_tuning.checkpoint_dir {folder!r} would be shared by the trials; leave it out")

    def _check_threshold(self) -> None:
        if self.threshold.max_drop is None:
            raise ValueError("threshold without max_drop; say how much worse than the float model the edge model may be")
        known = {"metric", "config", "output", "max_drop", "higher_is_better"}
        foreign = [name for name in self.threshold.model_dump(exclude_defaults=True) if name not in known]
        if foreign:
            raise ValueError(f"threshold.{foreign[0]}: a search measures one metric over all examples; leave it to the gate")

    def _check_fits(self, path: str, value: Value) -> None:
        """Refuses a value that fits neither with all optional steps nor without those that it isn't a field of."""
        without = {step: False for step in self.optional if not path.startswith(f"{step}.")}
        try:
            with_values(self.techniques, {path: value})
        except (ConfigError, ValueError) as error:
            try:
                with_values(self.techniques, {**without, path: value})
            except (ConfigError, ValueError):
                raise ValueError(f"space {path!r}: {error}") from None

    @property
    def may_calibrate(self) -> bool:
        """Whether a trial may need calibration data."""
        searched = self.space.get("quantization.scheme")
        quantization = self.techniques.quantization
        schemes = {*(searched.values if isinstance(searched, OneOf) else [quantization.scheme]), *(r.scheme for r in quantization.rules)}
        return bool(schemes & CALIBRATED) and (self.techniques.quantization.qat is None or "quantization.qat" in self.optional)


class TrialResult(Config):
    """One trial."""

    values: dict[str, Value] = Field(description="What was searched, by path; a step that may be left out as true or false.")
    size_bytes: int | None = Field(default=None, ge=0, description="Of the flatbuffer.")
    gzip_bytes: int | None = Field(default=None, ge=0, description="Of the flatbuffer after gzip -9.")
    latency_ratio: float | None = Field(default=None, gt=0, description="To the float flatbuffer, where it is the objective.")
    metric: float | None = Field(default=None, description="The threshold's.")
    drop: float | None = Field(default=None, description="How much worse than the float model, below 0 better.")
    feasible: bool = Field(default=False, description="Built, and within max_drop.")
    seconds: float = Field(ge=0, description="What the trial took.")
    error: str = Field(default="", description="Why nothing came of it, where nothing did.")


class SearchReport(Config):
    """`search.json` of CompressionTuner's report."""

    config: SearchConfig
    reference: TrialResult = Field(description="The float model as a float flatbuffer.")
    best: dict[str, Value] = Field(description="The values of the best trial.")
    trials: tuple[TrialResult, ...] = Field(description="In the order in which they were tried.")


def with_values(techniques: Techniques, values: Mapping[str, Value]) -> Techniques:
    """Techniques with other values.

    Args:
        techniques: what to start from.
        values: fields by their path; a step to False to leave it out, to True to keep it. Fields of a step left out don't count.

    Raises:
        ConfigError: a value is out of bounds, or fields don't fit each other.
        ValueError: there is no such field, or a step is to be left out that can't be.

    >>> from tfx_edge.schemas import ClusteringConfig, FineTuningConfig, Techniques
    >>> from tfx_edge.schemas.search import with_values
    >>> clustered = Techniques(clustering=ClusteringConfig(fine_tuning=FineTuningConfig(label_key="label")))
    >>> with_values(clustered, {"clustering.clusters.*": 8, "quantization.scheme": "float16"}).clustering.clusters
    {'*': 8}
    >>> with_values(clustered, {"clustering": False, "clustering.clusters.*": 8}).clustering is None
    True
    """
    data: dict[str, Any] = techniques.model_dump()
    left_out = [path for path, value in values.items() if value is False]
    for path, value in values.items():
        if any(path.startswith(f"{step}.") for step in left_out):
            continue
        node, name = _field(data, path)
        if isinstance(value, bool):
            if path not in _steps(techniques):
                raise ValueError(f"{path!r} is no step that can be left out; those there are {', '.join(_steps(techniques)) or 'none'}")
            if not value:
                node[name] = None
        else:
            node[name] = value
    return Techniques.model_validate(data)


def _steps(techniques: Techniques) -> dict[str, DistillationConfig | LowRankConfig | PruningConfig | ClusteringConfig | QatConfig]:
    """The steps that train, by their path."""
    every = {
        "distillation": techniques.distillation,
        "low_rank": techniques.low_rank,
        "pruning": techniques.pruning,
        "clustering": techniques.clustering,
        "quantization.qat": techniques.quantization.qat,
    }
    return {path: step for path, step in every.items() if step is not None}


def _field(data: dict[str, Any], path: str) -> tuple[dict[str, Any], str]:
    """The dict that holds a path's last name; a key of a dict, such as a layer pattern, may have dots."""
    node, rest, where = data, path, "techniques"
    while rest not in node:
        name, dot, behind = rest.partition(".")
        below = node.get(name)
        if not dot or not isinstance(below, dict):
            missing = name in node and below is None
            raise ValueError(
                f"{name} isn't among the techniques; give it to them"
                if missing
                else f"{where} has no field {name if name not in node else rest!r}; it has {', '.join(node)}"
            )
        node, rest, where = below, behind, name
    return node, rest


def _ends(choice: Between | OneOf) -> tuple[Value, ...]:
    return choice.values if isinstance(choice, OneOf) else (choice.low, choice.high)
