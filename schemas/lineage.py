"""Where an edge model comes from: the run that made it, and the software."""

from pydantic import Field

from tfx_edge.schemas.config import Config


class RunInfo(Config):
    """The pipeline's run. All that differs between two exports of the same model and plan is here."""

    pipeline: str | None = Field(default=None, description="Its name; this and all below is None where the orchestrator doesn't tell.")
    run_id: str | None = Field(default=None, description="The run's, as the orchestrator counts.")
    component: str | None = Field(default=None, description="The component's id in the pipeline.")
    execution_id: str | None = Field(default=None, description="Of this execution: ML Metadata's, or the orchestrator's.")
    input_artifacts: dict[str, tuple[int, ...]] = Field(
        default_factory=dict, description="ML Metadata's ids of the inputs, by the component's key; without those that have none."
    )


class Toolchain(Config):
    """What the model was made with. The same model and plan give the same bytes with the same of these."""

    tfx_line: str = Field(description="Which of the supported TFX lines: 1.16 or 1.21.")
    tfx: str = Field(description="Version, as all below.")
    tensorflow: str
    litert: str = Field(description="Of ai-edge-litert, not of TensorFlow Lite.")
    tfx_edge: str
