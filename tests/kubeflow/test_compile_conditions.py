"""Conditions in compiled pipelines name inputs that their tasks have."""

import re

import pytest
import yaml

from tfx_edge.kubeflow.compile.compiler import Target, compile_pipeline
from tfx_edge.schemas import KubeflowConfig


@pytest.mark.parametrize("target", ["kfp", "vertex"])
def test_a_condition_on_a_components_own_input_names_that_input(target: Target) -> None:
    config = KubeflowConfig(pipeline_root="gs://bucket/root")
    document = yaml.safe_load(compile_pipeline("kubeflow_packages:conditional", config, image="edge", target=target))
    tasks = document.get("pipelineSpec", document)["root"]["dag"]["tasks"].values()
    [(condition, inputs)] = [(t["triggerPolicy"]["condition"], t["inputs"]["artifacts"]) for t in tasks if "triggerPolicy" in t]
    assert set(re.findall(r"inputs\.artifacts\['([^']+)'\]", condition)) == set(inputs) == {"model"}
