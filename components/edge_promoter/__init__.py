"""EdgePromoter: a blessed edge model to a signed release channel.

component.py     what goes in and out, and how to use it
executor.py      artifacts in, artifacts out
bundle_files.py  reads the edge model
provenance.py    what the input artifacts tell of where it comes from
channels.py      the channels and keys that the config names
storage.py       channels on any filesystem that TFX reaches
"""
