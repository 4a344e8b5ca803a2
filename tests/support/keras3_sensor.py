"""Trains the sensor's network with Keras 3, on windows scaled as Transform scales them, and saves it as a `.keras` file."""

import sys

import numpy as np

from tfx_edge.pipelines.sensor.data import LABEL, rows


def main(path: str) -> None:
    import keras

    assert keras.__version__.startswith("3."), keras.__version__
    keras.utils.set_random_seed(0)
    data = rows()
    windows = np.array([row["window"] for row in data])
    windows = (windows - windows.mean()) / windows.std()
    labels = np.array([row[LABEL] for row in data])
    window = keras.Input((64, 3), name="window")
    x = window
    for filters in (16, 32):
        x = keras.layers.Conv1D(filters, 5, strides=2, padding="same", activation="relu")(x)
    x = keras.layers.GlobalAveragePooling1D()(x)
    model = keras.Model(window, keras.layers.Dense(3, activation="softmax", name="activity")(x))
    model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["sparse_categorical_accuracy"])
    model.fit(windows, labels, epochs=12, batch_size=32, verbose=0)
    model.save(path)


if __name__ == "__main__":
    main(sys.argv[1])
