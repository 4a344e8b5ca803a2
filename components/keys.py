"""Keys of the components' inputs, outputs and execution properties, TFX's where TFX has one."""

from tfx.types import standard_component_specs as tfx_keys

EXAMPLES = tfx_keys.EXAMPLES_KEY
MODEL = tfx_keys.MODEL_KEY
FLOAT_MODEL = "float_model"  # input of a component whose output is `model`: TFX refuses one key for both
BASELINE_MODEL = tfx_keys.BASELINE_MODEL_KEY
SCHEMA = tfx_keys.SCHEMA_KEY
TRANSFORM_GRAPH = tfx_keys.TRANSFORM_GRAPH_KEY
RAW_EXAMPLES = "raw_examples"
EVALUATION = tfx_keys.EVALUATION_KEY
BLESSING = tfx_keys.BLESSING_KEY
MODEL_BLESSING = tfx_keys.MODEL_BLESSING_KEY
INFRA_BLESSING = tfx_keys.INFRA_BLESSING_KEY
PUSHED_MODEL = tfx_keys.PUSHED_MODEL_KEY

CALIBRATION_DATA = "calibration_data"
QUANTIZATION_PLAN = "quantization_plan"
REPORT = "report"
BEST_HYPERPARAMETERS = tfx_keys.BEST_HYPERPARAMETERS_KEY
TUNER_RESULTS = tfx_keys.TUNER_RESULTS_KEY

CONFIG = "config"
MODEL_FN = "model_fn"
MODULE_PATH = "module_path"


def nth(key: str, n: int) -> str:
    """The input of the n-th of several candidates."""
    return f"{key}_{n}"
