"""TFLite Metadata: what a flatbuffer says of itself, to be read by apps and by Android's tools.

schema.py     the tables of the format, as far as they are written here
tables.py     any such table to bytes and back
archive.py    the files behind the flatbuffer
convey.py     ModelMetadata to tables and back
metadata.py   into a flatbuffer and out of it
"""

from tfx_edge.litert.metadata.metadata import read_metadata, write_metadata

__all__ = ["read_metadata", "write_metadata"]
