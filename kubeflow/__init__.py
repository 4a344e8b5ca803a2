"""Packages for Kubeflow Pipelines: compile, run without a cluster, schedule. Loads what it needs on demand."""
