"""Distiller: trains a smaller model on what the given one says, as well as on the labels.

First of the Keras-side steps: Pruner, Clusterer and Quantizer then work on the student.
"""

from tfx.dsl.components.base.executor_spec import ExecutorClassSpec

from tfx_edge.components.distiller.executor import Executor
from tfx_edge.components.keras_component import KerasComponent
from tfx_edge.schemas import DistillationConfig


class Distiller(KerasComponent):
    """Knowledge distillation into a scaled teacher, or into the model that the user's `student_fn(teacher)` makes.

    `model` is the teacher. The student's inputs and output are named and shaped as the teacher's. With
    `module_path="package.module"` that module's `student_fn` makes the student, in place of `DistillationConfig.student`.
    `fine_tuning.early_stopping.split` names a split of the examples to look at.

    Outputs:
        model: `Format-Serving/`, a Keras 2 SavedModel whose inputs are the transformed features, compiled as the teacher was;
            `distillation.json`, a `DistillationReport`: parameters of both, losses by epoch, matched layers. Custom property
            `parameter_share`: the student's parameters over the teacher's.

    Example:
        distiller = Distiller(
            model=trainer.outputs["model"],
            examples=transform.outputs["transformed_examples"],
            transform_graph=transform.outputs["transform_graph"],
            config=DistillationConfig(
                student=ScaledStudent(width=0.5),
                temperature=4.0,
                alpha=0.7,
                fine_tuning=FineTuningConfig(label_key="label", epochs=30, early_stopping=EarlyStopping(split="eval")),
            ),
        )
        quantizer = Quantizer(model=distiller.outputs["model"], ...)
    """

    EXECUTOR_SPEC = ExecutorClassSpec(Executor)
    CONFIG_CLASS = DistillationConfig
