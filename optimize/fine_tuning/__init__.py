"""Training a model a little further on named features: what every technique that changes weights needs.

training.py         fine_tune
batches.py          examples by feature name to batches as the model takes them
data_checks.py      whether there are examples and labels that fit
steps.py            phases, and how many steps they take
order.py            shuffling, keeping in memory, holding out
losses.py           the loss
optimizers.py       optimizer, learning rate over time, clipping
class_weights.py    what an example counts
layer_settings.py   penalties, dropout and BatchNorm momentum while training
moving_statistics.py BatchNorm's statistics after training
stopping.py         early stopping, and at a loss that is no number
checkpoint.py       going on after a kill
augmentation.py     random changes to the features
progress.py         the progress bar
"""

from tfx_edge.optimize.fine_tuning.batches import input_batches
from tfx_edge.optimize.fine_tuning.layer_settings import LayersInTraining, layers_in_training
from tfx_edge.optimize.fine_tuning.losses import training_loss
from tfx_edge.optimize.fine_tuning.moving_statistics import recalibrate
from tfx_edge.optimize.fine_tuning.steps import count_steps
from tfx_edge.optimize.fine_tuning.training import fine_tune

__all__ = ["LayersInTraining", "count_steps", "fine_tune", "input_batches", "layers_in_training", "recalibrate", "training_loss"]
