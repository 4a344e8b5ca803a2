"""From a model file to the smallest of three edge models that keep its accuracy."""

from tfx.orchestration.pipeline import Pipeline

from tfx_edge.components.model_importer.component import ModelImporter
from tfx_edge.pipelines.local import local_pipeline
from tfx_edge.pipelines.sensor.data import LABEL
from tfx_edge.pipelines.variants import pareto
from tfx_edge.schemas import (
    ClusteringConfig,
    FineTuningConfig,
    GateConfig,
    PruningConfig,
    Techniques,
    Threshold,
)

GATE = GateConfig(label_key=LABEL, thresholds=(Threshold(metric="SparseCategoricalAccuracy", max_drop=0.02),))
TUNING = FineTuningConfig(label_key=LABEL, epochs=4, batch_size=32)
VARIANTS = {
    "int8": Techniques(),
    "pruned": Techniques(pruning=PruningConfig(target_sparsity=0.6, fine_tuning=TUNING)),
    "shared": Techniques(
        pruning=PruningConfig(target_sparsity=0.6, fine_tuning=TUNING),
        clustering=ClusteringConfig(clusters={"*": 16}, fine_tuning=TUNING),
    ),
}


def create_pipeline(
    root: str, data: str, model: str, *, name: str = "imported", gate: GateConfig = GATE, enable_cache: bool = True
) -> Pipeline:
    """Builds the pipeline; see `local_pipeline`.

    Args:
        root: see `local_pipeline`.
        data: folder that `pipelines.sensor.data.write_examples` wrote.
        model: a `.keras` or `.h5` file or a SavedModel whose input `window` takes the transformed windows `[64, 3]`.
        name: see `local_pipeline`.
        gate: one for all variants.
        enable_cache: see `local_pipeline`.
    """
    return local_pipeline(
        root,
        data,
        name=name,
        user_code="tfx_edge.pipelines.sensor.user_code",
        importer=ModelImporter(path=model),
        stage=lambda importer, transform: pareto(importer, transform, VARIANTS, gate=gate),
        enable_cache=enable_cache,
    )
