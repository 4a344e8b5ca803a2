"""Float model and plan in, edge model out."""

from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.documents import write_bytes, write_document
from tfx_edge.components.float_flatbuffers import convert_model
from tfx_edge.litert import inspect
from tfx_edge.litert.golden import golden_vectors
from tfx_edge.litert.plan import check_fits, make_plan
from tfx_edge.litert.planning import Planned, carry_out
from tfx_edge.litert.runner import Runner
from tfx_edge.schemas import ExportConfig, Manifest, QuantizationConfig

FLATBUFFER, MANIFEST, GOLDEN = "tflite", "edge/manifest.json", "edge/golden.npz"


class Executor(BaseExecutor):
    """Executes TFLiteExporter."""

    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Exports `float_model` as `quantization_plan` says.

        Args:
            input_dict: `float_model`; `quantization_plan` or none, for a float export; `transform_graph` or none.
            output_dict: `model` gets `Format-Serving/tflite`, `edge/manifest.json` and `edge/golden.npz`.
            exec_properties: `config`, the JSON of an `ExportConfig`.

        Raises:
            EdgeError: the model can't be converted, or the plan is for another one; nothing is written then.
        """
        config = ExportConfig.from_json(exec_properties[keys.CONFIG])
        plans = input_dict.get(keys.QUANTIZATION_PLAN)
        found = plan_files.read(artifact_utils.get_single_uri(plans)) if plans else None
        source = artifact_utils.get_single_instance(input_dict[keys.FLOAT_MODEL])
        loaded, name = float_models.load([source], input_dict.get(keys.TRANSFORM_GRAPH)), f"the model at {source.uri}"
        float_model = convert_model(loaded, name)
        planned, plan_digest = found or (Planned(make_plan(float_model, QuantizationConfig(scheme="float32"))), None)
        plan = planned.plan
        if plan.method == "qat":
            check_fits(float_model, plan)
            model = convert_model(loaded, name, quantized_io=plan.config.io_type)
        else:
            model = carry_out(float_model, planned)
        manifest = Manifest(
            description=config.description,
            digest=inspect.digest(model),
            float_model_digest=plan.float_model_digest,
            plan_digest=plan_digest,
            scheme=plan.config.scheme,
            signature=Runner(model).signature,
            size_bytes=len(model),
            gzip_bytes=inspect.gzip_size(model),
            float_size_bytes=len(float_model),
            float_gzip_bytes=inspect.gzip_size(float_model),
            minimum_runtime=inspect.minimum_runtime(model),
            operators=inspect.operators(model),
        )

        golden = golden_vectors(model, ranges=planned.ranges)

        output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
        write_bytes(f"{output.uri}/{GOLDEN}", golden)
        write_document(f"{output.uri}/{MANIFEST}", manifest)
        write_bytes(f"{path_utils.serving_model_dir(output.uri)}/{FLATBUFFER}", model)
        output.set_string_custom_property("scheme", manifest.scheme)
        output.set_string_custom_property("digest", manifest.digest)
        output.set_int_custom_property("size_bytes", manifest.size_bytes)
        output.set_int_custom_property("gzip_bytes", manifest.gzip_bytes)
