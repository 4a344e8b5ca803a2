"""Float model and plan in, edge model out."""

from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import path_utils

from tfx_edge.components import float_models, keys, plan_files
from tfx_edge.components.documents import write_bytes, write_chunks, write_document
from tfx_edge.components.edge_model_files import FLATBUFFER
from tfx_edge.components.float_flatbuffers import convert_models
from tfx_edge.components.lineage import folder_digest, run_info, toolchain
from tfx_edge.components.observed import observed
from tfx_edge.components.raw_features import with_preprocessing
from tfx_edge.components.tflite_exporter.bundle import make_bundle
from tfx_edge.components.tflite_exporter.manifest import build_manifest, labelled_output
from tfx_edge.components.tflite_exporter.preprocessing import describe_preprocessing
from tfx_edge.litert.plan import check_fits, make_plan
from tfx_edge.litert.planning import Planned, carry_out
from tfx_edge.optimize.raw_features import TransformGraph
from tfx_edge.optimize.source_layers import source_layers
from tfx_edge.schemas import ConversionConfig, EdgeError, ExportConfig, QuantizationConfig
from tfx_edge.schemas.release import MANIFEST


class Executor(BaseExecutor):
    """Executes TFLiteExporter."""

    @observed
    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Exports `float_model` as `quantization_plan` says.

        Args:
            input_dict: `float_model`; `quantization_plan` or none, for a float export; `transform_graph` or none.
            output_dict: `model` gets `Format-Serving/tflite` and in `edge/` what `make_bundle` gives, with `manifest.json`.
            exec_properties: `config`, the JSON of an `ExportConfig`.

        Raises:
            EdgeError: the model can't be converted, the plan is for another one, or a target can't take the model; nothing is written
                then.
        """
        config = ExportConfig.from_json(exec_properties[keys.CONFIG])
        plans, graphs = input_dict.get(keys.QUANTIZATION_PLAN), input_dict.get(keys.TRANSFORM_GRAPH)
        graph = TransformGraph(artifact_utils.get_single_uri(graphs)) if graphs else None
        found = plan_files.read(artifact_utils.get_single_uri(plans)) if plans else None
        conversion = _conversion(config, found[0].plan.config if found else None)
        source = artifact_utils.get_single_instance(input_dict[keys.FLOAT_MODEL])
        models, name = float_models.load_signatures([source], graphs, conversion.signatures), f"the model at {source.uri}"
        signature = conversion.main_signature
        main = models[signature]
        labelled_output(config, main.signature)  # before what takes long
        preprocessing = describe_preprocessing(graph, main.signature.inputs) if graph and not conversion.signatures else None

        float_model = convert_models(models, name, conversion)
        without = QuantizationConfig(scheme="float32", conversion=conversion)
        planned, plan_digest = found or (Planned(make_plan(float_model, without)), None)
        if planned.plan.method == "qat":
            check_fits(float_model, planned.plan)
            inner = convert_models(models, name, conversion, quantized_io=planned.plan.config.io_type)
        else:
            inner = carry_out(float_model, planned)
        model = with_preprocessing(inner, graph) if config.features == "raw" else inner
        layers = () if main.keras_model is None else source_layers(main.keras_model)
        bundle = make_bundle(config, model, layers, planned.ranges, preprocessing, inner, graph, signature)
        manifest = build_manifest(
            config,
            model=bundle.model,
            float_model=float_model,
            planned=planned,
            plan_digest=plan_digest,
            source_model_digest=folder_digest(path_utils.serving_model_path(source.uri)),
            preprocessing=preprocessing,
            made_with=toolchain(),
            run=run_info(self._context, input_dict),
        )

        output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
        for file, chunks in bundle.files.items():
            write_chunks(f"{output.uri}/edge/{file}", chunks)
        write_document(f"{output.uri}/{MANIFEST}", manifest)
        write_bytes(f"{path_utils.serving_model_dir(output.uri)}/{FLATBUFFER}", bundle.model)
        output.set_string_custom_property("scheme", manifest.scheme)
        output.set_string_custom_property("digest", manifest.digest)
        output.set_int_custom_property("size_bytes", manifest.size_bytes)
        output.set_int_custom_property("gzip_bytes", manifest.gzip_bytes)


def _conversion(config: ExportConfig, planned: QuantizationConfig | None) -> ConversionConfig:
    """How the float flatbuffer is made: as for the plan, where there is one."""
    if planned is None:
        return config.conversion or ConversionConfig()
    if config.conversion is not None and config.conversion != planned.conversion:
        raise EdgeError(
            f"ExportConfig.conversion has {config.conversion}: the plan was made for {planned.conversion}; leave it out, "
            "and set QuantizationConfig.conversion"
        )
    return planned.conversion
