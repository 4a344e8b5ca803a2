"""Which operators and Keras layers can be one operator with a normalization or an activation behind them."""

# LiteRT's operators with weights, whose kernels apply an activation at the end.
KERNELS = frozenset({"CONV_2D", "DEPTHWISE_CONV_2D", "CONV_3D", "TRANSPOSE_CONV", "CONV_3D_TRANSPOSE", "FULLY_CONNECTED", "BATCH_MATMUL"})

# Operators that only move values, of which a layer may need one beside the operator that it is fused into.
MOVES = frozenset(
    {"CAST", "DEQUANTIZE", "EXPAND_DIMS", "GATHER", "PACK", "PAD", "PADV2", "QUANTIZE", "RESHAPE", "SHAPE", "SLICE", "SQUEEZE"}
    | {"STRIDED_SLICE", "TRANSPOSE", "UNPACK"}
)

RECURRENT_OPERATORS = frozenset({"LSTM", "RNN", "UNIDIRECTIONAL_SEQUENCE_LSTM", "UNIDIRECTIONAL_SEQUENCE_RNN"})
RECURRENT_LAYERS = frozenset({"Bidirectional", "GRU", "LSTM", "RNN", "SimpleRNN"})

NORMALIZATIONS = frozenset({"BatchNormalization", "SyncBatchNormalization"})

# Keras' activation layers; FUSED are the functions that LiteRT's kernels have.
ACTIVATIONS = frozenset({"Activation", "ELU", "LeakyReLU", "PReLU", "ReLU", "Softmax", "ThresholdedReLU"})
FUSED = frozenset({"relu", "relu6"})

# Layers that are one kernel: a weight for each place, and nothing behind it but their own activation.
CONVOLUTIONS = frozenset(
    {f"Conv{n}D" for n in (1, 2, 3)}
    | {f"Conv{n}DTranspose" for n in (1, 2, 3)}
    | {"DepthwiseConv1D", "DepthwiseConv2D", "SeparableConv1D", "SeparableConv2D", "Dense"}
)
