"""The edge model's manifest, and what the flatbuffer says of itself."""

from typing import Any

from tfx_edge.litert import inspect
from tfx_edge.litert.planning import Planned
from tfx_edge.litert.runner import Runner
from tfx_edge.litert.signatures import signatures
from tfx_edge.schemas import EdgeError, ExportConfig, Manifest, Signature, TensorRanges, TensorSpec
from tfx_edge.schemas.lineage import RunInfo, Toolchain
from tfx_edge.schemas.model_metadata import AssociatedFile, ModelMetadata, Normalization, TensorMetadata
from tfx_edge.schemas.preprocessing import Preprocessing

LABEL_FILE = "labels.txt"
_UNCHANGED = Normalization(mean=(0.0,), std=(1.0,))


def labelled_output(config: ExportConfig, signature: Signature) -> str | None:
    """The output that the config's labels are of: the one whose last dimension has as many positions; None without labels.

    Args:
        config: of the export.
        signature: of the float model or of the flatbuffer.

    Raises:
        EdgeError: no output has, or several have.
    """
    if not config.labels:
        return None
    fitting = [spec.name for spec in signature.outputs if len(spec.shape) > 1 and spec.shape[-1] == len(config.labels)]
    if len(fitting) != 1:
        there = ", ".join(f"{spec.name!r} {list(spec.shape)}" for spec in signature.outputs)
        fix = "as many labels as its last dimension has positions" if not fitting else "no labels, since they could be of any of these"
        raise EdgeError(f"ExportConfig.labels: got {len(config.labels)} labels, the model's outputs are {there}; give {fix}")
    return fitting[0]


def model_metadata(
    config: ExportConfig,
    model: bytes,
    ranges: TensorRanges | None = None,
    preprocessing: Preprocessing | None = None,
    signature: str | None = None,
) -> ModelMetadata:
    """What the flatbuffer is to say of itself.

    Args:
        config: of the export.
        model: the flatbuffer, with all that it computes.
        ranges: calibrated, by the flatbuffer's tensor names.
        preprocessing: what Transform does before the model; what it does to single values is told where features are transformed.
        signature: the one that is described; None for `serving_default` or the only one.

    Raises:
        EdgeError: the labels fit no output.
    """
    runner = Runner(model, signature=signature)
    tensors = inspect.parse(model).subgraphs[runner.entry.subgraph].tensors

    def extremes(place: int) -> dict[str, Any]:
        known = None if ranges is None else ranges.ranges.get(tensors[place].name.decode())
        return {} if known is None else {"min": (known.min,), "max": (known.max,)}

    outside = preprocessing.features if preprocessing is not None and config.features == "transformed" else ()
    normalizations = {f.name: f.normalization for f in outside if f.normalization != _UNCHANGED}
    labelled = labelled_output(config, runner.signature)
    labels = AssociatedFile(
        name=LABEL_FILE, kind="axis_labels", description="A label a line.", text="".join(f"{label}\n" for label in config.labels)
    )
    return ModelMetadata(
        name=config.name,
        description=config.description,
        version=config.version,
        author=config.author,
        license=config.license,
        inputs=tuple(
            TensorMetadata(
                name=spec.name,
                **_content(spec),
                **extremes(runner.entry.inputs[spec.name]),
                normalization=normalizations.get(spec.name),
            )
            for spec in runner.signature.inputs
        ),
        outputs=tuple(
            TensorMetadata(
                name=spec.name,
                content="feature",
                **extremes(runner.entry.outputs[spec.name]),
                files=(labels,) if spec.name == labelled else (),
            )
            for spec in runner.signature.outputs
        ),
    )


def build_manifest(
    config: ExportConfig,
    *,
    model: bytes,
    float_model: bytes,
    planned: Planned,
    plan_digest: str | None,
    source_model_digest: str,
    preprocessing: Preprocessing | None,
    made_with: Toolchain,
    run: RunInfo,
) -> Manifest:
    """The manifest of an edge model.

    Args:
        config: of the export.
        model: the flatbuffer as it is written, with its metadata.
        float_model: the float flatbuffer that it was made from.
        planned: what was carried out.
        plan_digest: of the plan's files; None without a plan.
        source_model_digest: of the SavedModel's folder.
        preprocessing: what Transform does; None without Transform.
        made_with: the software.
        run: what the orchestrator tells of this run.
    """
    found = signatures(model)
    return Manifest(
        name=config.name,
        description=config.description,
        version=config.version,
        author=config.author,
        license=config.license,
        labels=config.labels,
        digest=inspect.digest(model),
        source_model_digest=source_model_digest,
        float_model_digest=planned.plan.float_model_digest,
        plan_digest=plan_digest,
        scheme=planned.plan.config.scheme,
        features=config.features,
        signature=found[planned.plan.config.conversion.main_signature],
        signatures=dict(sorted(found.items())),
        preprocessing=preprocessing,
        targets=tuple(target if isinstance(target, str) else target.resolve().name for target in config.targets),
        size_bytes=len(model),
        gzip_bytes=inspect.gzip_size(model),
        float_size_bytes=len(float_model),
        float_gzip_bytes=inspect.gzip_size(float_model),
        minimum_runtime=inspect.minimum_runtime(model),
        operators=inspect.operators(model),
        made_with=made_with,
        run=run,
    )


def _content(spec: TensorSpec) -> dict[str, Any]:
    """An image is `[n, height, width, 1 or 3]`, of numbers."""
    colors = {1: "grayscale", 3: "rgb"}
    if len(spec.shape) == 4 and spec.shape[-1] in colors:
        return {"content": "image", "color_space": colors[spec.shape[-1]]}
    return {"content": "feature"}
