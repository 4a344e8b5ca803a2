"""What Transform's graph needs for an output: raw features and operators."""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any

import tensorflow as tf

from tfx_edge.optimize.raw_features.device_form import type_spec

_SILENT = {"Const", "Identity", "Placeholder", "PlaceholderWithDefault"}  # which compute nothing


class TransformGraph:
    """A TransformGraph artifact.

    Attributes:
        path: the artifact's folder.
        output: TensorFlow Transform's own view of it.
        raw: TensorFlow's parsing spec of the raw features, by name.
        transformed: the same of the transformed features.
        layer: the graph as a function of a dict of raw features; leaves out what the given ones don't suffice for.
    """

    def __init__(self, path: str) -> None:
        """Opens the artifact's folder."""
        import tensorflow_transform as tft

        self.path = path
        self.output: Any = tft.TFTransformOutput(path)
        self.raw: Mapping[str, Any] = self.output.raw_feature_spec()
        self.transformed: Mapping[str, Any] = self.output.transformed_feature_spec()
        self.layer: Any = self.output.transform_features_layer()

    def needed(self, wanted: Collection[str]) -> tuple[str, ...]:
        """The raw features that some transformed ones are made from, sorted."""
        return tuple(name for name, made in self._made_from.items() if made & set(wanted))

    def operators(self, wanted: str, *, on_text: bool = False) -> set[str]:
        """TensorFlow's operators that compute a transformed feature; `on_text`: those alone that read or write text."""
        pending = [tensor.op for tensor in tf.nest.flatten(self._outputs[wanted], expand_composites=True)]
        found = {}
        while pending:
            op = pending.pop()
            if op.name not in found:
                found[op.name] = op
                pending += [tensor.op for tensor in op.inputs]
        return {op.type for op in found.values() if not on_text or _is_on_text(op)} - _SILENT

    @cached_property
    def _made_from(self) -> dict[str, set[str]]:
        """By raw feature the transformed ones that can't be computed without it."""
        function = tf.function(lambda features: dict(self.layer(features)))
        made = {}
        for name in sorted(self.raw):
            others = {other: type_spec(feature) for other, feature in self.raw.items() if other != name}
            computable = function.get_concrete_function(others).structured_outputs if others else {}
            made[name] = set(self.transformed) - set(computable)
        return made

    @cached_property
    def _outputs(self) -> Mapping[str, Any]:
        """The outputs in the graph's own body, which the layer hides in a call."""
        from tensorflow_transform.saved.saved_transform_io_v2 import SavedModelLoader

        self._loader = SavedModelLoader(self.output.transform_savedmodel_dir)  # whose graph lives as long as it
        outputs: Mapping[str, Any] = self._loader.structured_outputs
        return outputs


def _is_on_text(op: tf.Operation) -> bool:
    return any(tensor.dtype == tf.string for tensor in (*op.inputs, *op.outputs))
