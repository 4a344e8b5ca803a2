"""Models, blessings and reports in, one model and its blessing out."""

import itertools
from typing import Any

from tfx.dsl.components.base.base_executor import BaseExecutor
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact
from tfx.utils import io_utils

from tfx_edge.components import keys
from tfx_edge.components.documents import read_bytes, write_document
from tfx_edge.components.edge_validator.blessing import deciding_component, write_blessing
from tfx_edge.components.model_selector.selection import Candidate, select
from tfx_edge.components.observed import observed
from tfx_edge.schemas import EdgeError, GateReport, SelectionConfig

REPORT = "selection.json"


class Executor(BaseExecutor):
    """Executes ModelSelector."""

    @observed
    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Chooses and copies.

        Args:
            input_dict: `model_0`, `blessing_0`, `report_0`, `model_1` and so on; a blessing and a report name the model that they are of.
            output_dict: `model`, `report` with `selection.json`, and last `blessing`.
            exec_properties: `config`, the JSON of a `SelectionConfig`.

        Raises:
            EdgeError: a model has no blessing or no report, these contradict each other, or the candidates can't be compared.
        """
        config = SelectionConfig.from_json(exec_properties[keys.CONFIG])
        models, blessings, reports = (_of_all(key, input_dict) for key in (keys.MODEL, keys.BLESSING, keys.REPORT))
        candidates = [_candidate(model, _by_model(blessings), _by_model(reports)) for model in models]
        report = select(candidates, config)
        chosen = next(model for model in models if model.uri == report.candidates[0].model)
        output = artifact_utils.get_single_instance(output_dict[keys.MODEL])
        io_utils.copy_dir(chosen.uri, output.uri)
        write_document(f"{artifact_utils.get_single_uri(output_dict[keys.REPORT])}/{REPORT}", report)
        blessing = artifact_utils.get_single_instance(output_dict[keys.BLESSING])
        write_blessing(blessing, report.chosen is not None, output, None, deciding_component(exec_properties, self._context))


def _of_all(key: str, input_dict: dict[str, list[Artifact]]) -> list[Artifact]:
    numbers = itertools.takewhile(lambda n: keys.nth(key, n) in input_dict, itertools.count())
    return [artifact for n in numbers for artifact in input_dict[keys.nth(key, n)]]


def _by_model(artifacts: list[Artifact]) -> dict[str, Artifact]:
    return {artifact.get_string_custom_property("current_model"): artifact for artifact in artifacts}


def _candidate(model: Artifact, blessings: dict[str, Artifact], reports: dict[str, Artifact]) -> Candidate:
    if model.uri not in blessings or model.uri not in reports:
        raise EdgeError(f"the model at {model.uri} has no blessing or no report among the inputs; give those of the gate that judged it")
    blessing, report = blessings[model.uri], GateReport.from_json(read_bytes(f"{reports[model.uri].uri}/report.json"))
    if bool(blessing.get_int_custom_property("blessed")) != report.blessed:
        raise EdgeError(f"the blessing and the report of the model at {model.uri} contradict each other; run its gate again")
    return Candidate(model.uri, blessing.get_string_custom_property("component_id"), report)
