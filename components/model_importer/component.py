"""ModelImporter: a model file, trained elsewhere, as the Model artifact that the rest of a pipeline takes from a Trainer."""

from tfx.dsl.components.base.base_component import BaseComponent
from tfx.dsl.components.base.executor_spec import ExecutorClassSpec
from tfx.orchestration.data_types import RuntimeParameter
from tfx.types import standard_artifacts
from tfx.types.channel import Channel
from tfx.types.component_spec import ChannelParameter, ComponentSpec, ExecutionParameter

from tfx_edge.components import keys
from tfx_edge.components.model_importer.executor import PATH, Executor


class ModelImporterSpec(ComponentSpec):
    """Outputs and properties of ModelImporter."""

    PARAMETERS = {PATH: ExecutionParameter(type=str), keys.MODEL_FN: ExecutionParameter(type=str, optional=True)}
    INPUTS: dict[str, ChannelParameter] = {}
    OUTPUTS = {keys.MODEL: ChannelParameter(type=standard_artifacts.Model)}


class ModelImporter(BaseComponent):
    """Imports a `.h5` or `.keras` file or a SavedModel folder.

    A Keras 3 file is converted to Keras 2 and checked for equal outputs; a layer without a Keras 2 twin stops it and is named. The
    model's inputs must be named as the (transformed) features that the pipeline's examples hold.

    TFX caches by path: after changing a file in place, import it under a new name, or with the cache off.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel, compiled if the imported one was.

    Example:
        importer = ModelImporter(path="/models/digits.keras")
        edge = edge_stage(importer, transform, gate=...)
    """

    SPEC_CLASS = ModelImporterSpec
    EXECUTOR_SPEC = ExecutorClassSpec(Executor)

    def __init__(self, path: str | RuntimeParameter, model_fn: str | RuntimeParameter | None = None) -> None:
        """Wires the component.

        Args:
            path: of the file or folder, on a filesystem that TFX reaches.
            model_fn: for a SavedModel without Keras metadata: import path of a function that builds the model.
        """
        outputs = {keys.MODEL: Channel(type=standard_artifacts.Model)}
        super().__init__(spec=ModelImporterSpec(**{PATH: path, keys.MODEL_FN: model_fn}, **outputs))
