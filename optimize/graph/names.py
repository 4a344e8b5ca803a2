"""Names for the layers of nested models once they stand side by side with those of the outer one."""

from collections.abc import Iterator
from typing import TypeAlias

import tf_keras

Layer: TypeAlias = tf_keras.layers.Layer


def is_nested(layer: Layer) -> bool:
    """Whether a layer is a model whose layers can be seen: functional, or Sequential with a known input shape."""
    return isinstance(layer, tf_keras.Model) and bool(layer._is_graph_network)


def unique_names(model: tf_keras.Model) -> dict[int, str]:
    """A name for each layer, at any depth, by the layer's id; the same model gives the same names.

    A layer keeps its name where it can. The outer model's layers and outputs go first; an inner layer whose name is taken is put
    behind its model's name, and numbered where that is taken too.

    Args:
        model: functional or Sequential, built.
    """
    names = {id(layer): layer.name for layer in model.layers if not is_nested(layer)}
    taken = {*names.values(), *model.input_names, *model.output_names}
    for owner, layer in _inner(model):
        if id(layer) not in names:
            names[id(layer)] = _free(layer.name, owner.name, taken)
            taken.add(names[id(layer)])
    return names


def _inner(model: tf_keras.Model) -> Iterator[tuple[tf_keras.Model, Layer]]:
    """Layers inside of nested models, each with the model that holds it."""
    for nested in filter(is_nested, model.layers):
        for layer in nested.layers:
            if not is_nested(layer) and not isinstance(layer, tf_keras.layers.InputLayer):
                yield nested, layer
        yield from _inner(nested)


def _free(name: str, owner: str, taken: set[str]) -> str:
    proposal, count = name, 0
    while proposal in taken:
        proposal = f"{owner}_{name}" + (f"_{count}" if count else "")
        count += 1
    return proposal
