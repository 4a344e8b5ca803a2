"""A run as one HTML file: documents of `tfx_edge.schemas` in, text out. No TFX, no TensorFlow.

`page.render_page` makes the page of a `RunReport`; each of the other modules makes one part of it.
"""
