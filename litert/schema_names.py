"""LiteRT's names of what a flatbuffer holds as numbers."""


def names(enumeration: type) -> dict[int, str]:
    """The names of one of the schema's enumerations, by number.

    >>> from ai_edge_litert import schema_py_generated as schema
    >>> names(schema.TensorType)[9]
    'INT8'
    """
    # Python 3.13 keeps the class's line among its attributes, which is some type's number too.
    return {code: name for name, code in vars(enumeration).items() if isinstance(code, int) and not name.startswith("_")}
