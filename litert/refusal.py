"""What TFLiteConverter says against a model, as one line that tells where in the model it is and what to do."""

import re

_SHOWN = 5  # places of one operator


def refusal(said: str) -> str:
    """One line out of a converter's exception.

    Operators without a kernel are listed in it as `tf.Name(types...)`, and before that each with its place in the graph,
    `loc(callsite(callsite(fused["Name:", "model/layer/Name@function"] ...`.
    """
    operators = sorted(set(re.findall(r"^\s+(tf\.\w+)\(", said, re.MULTILINE)))
    if not operators:
        if "Lowering tensor list ops" in said:
            return "a recurrent layer doesn't convert with a batch of any size (tensor list ops); set batch_size 1, or unroll the layer"
        return f"TFLiteConverter refused it: {last_words(said)}"
    named = ", ".join(f"{op}{_places(op, said)}" for op in operators)
    if re.search(r"tensor<[^>]*b?f16>", said):
        return (
            f"{named} computes in 16 bits, for which LiteRT has no builtin operator; bring the model to float32, which "
            "edge preparation does by itself for Keras models of a mixed policy: save the model with model.save, or give model_fn"
        )
    custom = re.search(r"^Custom ops:", said, re.MULTILINE)
    allow = "" if custom else "; or allow TensorFlow's kernels by select_tf_ops, for apps that bring them"
    return (
        f"{named} needs {'a custom kernel' if custom else 'Flex'}: LiteRT has no builtin operator for it; replace the layer that uses it, "
        "which edge preparation does by itself for many of Keras' own: save the model with model.save, or give model_fn, which rebuilds "
        f"it{allow}"
    )


def _places(operator: str, said: str) -> str:
    """Where in the graph an operator stands, by the names that layers gave to their part of it."""
    kind = re.escape(operator.removeprefix("tf."))
    found = re.findall(rf'fused\["{kind}:", "([^"@]+)(?:@[^"]*)?"\]', said)
    places = sorted({place.rpartition("/")[0] or place for place in found})
    shown = ", ".join(places[:_SHOWN]) + (f" and {len(places) - _SHOWN} more" if len(places) > _SHOWN else "")
    return f" (at {shown})" if places else ""


def last_words(said: str) -> str:
    """The last lines that say something, without TensorFlow's informational log lines and stack frames."""
    lines = [" ".join(line.split()) for line in said.splitlines() if line.strip()]
    speaking = [line for line in lines if not re.match(r"(\*\*\*|@|File \"|Traceback|\^|~|[IW]\d{4} |\d{4}-\d\d-\d\d .*: [IW] )", line)]
    return " / ".join(speaking[-2:])[:500] or "none"
