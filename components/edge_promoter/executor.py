"""Edge model and blessings in, release and pushed model out."""

import logging
from datetime import datetime
from typing import Any

from tfx.components.pusher.executor import Executor as Pusher
from tfx.components.util.model_utils import is_infra_validated, is_model_blessed
from tfx.types import artifact_utils
from tfx.types.artifact import Artifact

from tfx_edge.components import keys
from tfx_edge.components.documents import read_bytes, write_bytes
from tfx_edge.components.edge_model_files import FLATBUFFER
from tfx_edge.components.edge_promoter.bundle_files import read_edge_model
from tfx_edge.components.edge_promoter.channels import create_missing, keyring_of, storage_of
from tfx_edge.components.edge_promoter.provenance import provenance_of
from tfx_edge.components.observed import observed
from tfx_edge.release.bom import bill_of_materials
from tfx_edge.release.bundle import BOM, Bundle
from tfx_edge.release.channel import utc_now
from tfx_edge.release.judged import check_judged
from tfx_edge.release.publish import publish
from tfx_edge.release.told import tell_promoted
from tfx_edge.schemas import EdgeError, GateReport, PromotionConfig, Provenance
from tfx_edge.schemas.release import MODEL


class Executor(Pusher):
    """Publishes what is blessed. A model that isn't is a result, not a failure, as with a Pusher."""

    @observed
    def Do(self, input_dict: dict[str, list[Artifact]], output_dict: dict[str, list[Artifact]], exec_properties: dict[str, Any]) -> None:
        """Publishes one model.

        Args:
            input_dict: `model` with `Format-Serving/tflite` and `edge/`; `model_blessing`, `infra_blessing` or both; `report`,
                `baseline_model` and `examples` or none.
            output_dict: `pushed_model` gets a copy of the flatbuffer and TFX's properties.
            exec_properties: `config`, the JSON of a `PromotionConfig`.

        Raises:
            EdgeError: a blessing or report is of another model, the report says no where the blessings say yes, the model's files don't
                fit each other, or the channel refuses: another process is changing it, a key is missing, the model was taken back there.
                The channel is as it was then.
        """
        config = PromotionConfig.from_json(exec_properties[keys.CONFIG])
        model = artifact_utils.get_single_instance(input_dict[keys.MODEL])
        pushed = artifact_utils.get_single_instance(output_dict[keys.PUSHED_MODEL])
        refusal = _refusal(input_dict, model)
        if refusal is not None:
            logging.warning("not promoted: %s", refusal)
            self._MarkNotPushed(pushed)
            return
        now = utc_now()
        provenance = provenance_of(self._context, input_dict)
        exported = read_edge_model(model.uri)
        _check_report(input_dict, model, exported)
        bundle = _described(exported, provenance, now)
        storage = storage_of(config.channels)
        if config.create:
            create_missing(storage, config, now)
        published = publish(storage, config.channel, bundle, keyring_of(config), cohort=config.cohort, provenance=provenance, now=now)
        state = "published" if published.changed else "is there already"
        logging.info("%s: release %d %s", storage.describe(config.channel), published.release.number, state)
        write_bytes(f"{pushed.uri}/{FLATBUFFER}", bundle.files[MODEL])
        self._MarkPushed(pushed, storage.describe(config.channel), str(published.release.number))
        tell_promoted(published)


def _refusal(input_dict: dict[str, list[Artifact]], model: Artifact) -> str | None:
    """Why the model may not leave; None where every blessing that is given blesses it.

    Raises:
        EdgeError: a blessing, whatever it says, is of another model: the pipeline is wired wrong.
    """
    given = {key: list(input_dict.get(key) or []) for key in (keys.MODEL_BLESSING, keys.INFRA_BLESSING)}
    if not any(given.values()):
        return "there is no blessing"
    for blessing in given[keys.MODEL_BLESSING]:  # an infra blessing names no model
        _check_model("blessing", blessing, model)
    for key, blessed in ((keys.MODEL_BLESSING, is_model_blessed), (keys.INFRA_BLESSING, is_infra_validated)):
        for blessing in given[key]:
            if not blessed(blessing):
                return f"the {key} at {blessing.uri} says no"
    return None


def _check_model(what: str, artifact: Artifact, model: Artifact) -> None:
    """A blessing of another model says nothing of this one."""
    judged = artifact.get_string_custom_property("current_model")
    if judged.rstrip("/") != model.uri.rstrip("/"):
        raise EdgeError(f"the {what} at {artifact.uri} is of the model {judged or 'it does not name'}; expected {model.uri}")


def _check_report(input_dict: dict[str, list[Artifact]], model: Artifact, bundle: Bundle) -> None:
    for artifact in input_dict.get(keys.REPORT) or []:
        _check_model("report", artifact, model)
        report = GateReport.from_json(read_bytes(f"{artifact.uri}/report.json"))
        check_judged(bundle, report, f"the report at {artifact.uri}", f"the model at {model.uri}")
        if not report.blessed:
            raise EdgeError(
                f"the report at {artifact.uri} says no, the blessing yes; give EdgePromoter blessing and report of one EdgeValidator"
            )


def _described(bundle: Bundle, provenance: Provenance, now: datetime) -> Bundle:
    """The bundle with what a release says of itself."""
    described = bundle.with_provenance(provenance)
    return described.with_file(BOM, bill_of_materials(described, now))
