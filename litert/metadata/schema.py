"""The tables of TFLite Metadata, as far as they are written here.

Source: `tensorflow_lite_support/metadata/metadata_schema.fbs` of github.com/tensorflow/tflite-support, schema version 1.1.0; the number
before each field is its place in its table there, where a union counts for two and its table is the second.
"""

from flatbuffers import number_types

from tfx_edge.litert.metadata.tables import Floats, Number, OneOf, Table, Tables, Text

IDENTIFIER = b"M001"

BYTE = Number(number_types.Int8Flags)

ASSOCIATED_FILE = Table({"name": (0, Text()), "description": (1, Text()), "type": (2, BYTE)})

FEATURE_PROPERTIES = Table({})
IMAGE_PROPERTIES = Table({"color_space": (0, BYTE)})
BOUNDING_BOX_PROPERTIES = Table({})  # of which nothing is written here
CONTENT_PROPERTIES = OneOf({1: FEATURE_PROPERTIES, 2: IMAGE_PROPERTIES, 3: BOUNDING_BOX_PROPERTIES})
CONTENT = Table({"content_properties": (1, CONTENT_PROPERTIES)})

NORMALIZATION_OPTIONS = Table({"mean": (0, Floats()), "std": (1, Floats())})
PROCESS_UNIT = Table({"options": (1, OneOf({1: NORMALIZATION_OPTIONS}))})

STATS = Table({"max": (0, Floats()), "min": (1, Floats())})

TENSOR_METADATA = Table(
    {
        "name": (0, Text()),
        "description": (1, Text()),
        "content": (3, CONTENT),
        "process_units": (4, Tables(PROCESS_UNIT)),
        "stats": (5, STATS),
        "associated_files": (6, Tables(ASSOCIATED_FILE)),
    }
)

SUBGRAPH_METADATA = Table(
    {
        "input_tensor_metadata": (2, Tables(TENSOR_METADATA)),
        "output_tensor_metadata": (3, Tables(TENSOR_METADATA)),
    }
)

MODEL_METADATA = Table(
    {
        "name": (0, Text()),
        "description": (1, Text()),
        "version": (2, Text()),
        "subgraph_metadata": (3, Tables(SUBGRAPH_METADATA)),
        "author": (4, Text()),
        "license": (5, Text()),
        "associated_files": (6, Tables(ASSOCIATED_FILE)),
        "min_parser_version": (7, Text()),
    }
)
