"""What runs on a device: LiteRT and NumPy are all it needs.

selftest.py   an edge model against its golden outputs
"""
