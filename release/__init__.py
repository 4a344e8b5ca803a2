"""Signed release channels: TUF repositories that devices follow. Needs neither TFX nor TensorFlow."""
