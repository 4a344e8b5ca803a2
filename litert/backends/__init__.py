"""What carries a plan out: each turns a float flatbuffer, a config and ranges into a quantized flatbuffer, without data.

litert.py     litert-quantizer, by the plan's recipe, in this process
wiring.py     integers or numbers: what each operator reads, mended and checked
hybrid.py     what it leaves in float of dynamic range: LSTMs and tables
converter.py  TFLiteConverter's quantizer, by the ranges alone, in a process of its own
choice.py     which of them, for a config that leaves it to us
"""
