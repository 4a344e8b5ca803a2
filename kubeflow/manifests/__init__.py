"""Packages in Git that clusters take their pipelines from: `python -m tfx_edge.kubeflow.manifests check|update`, in a checkout.

committed.py   compiles them, and holds what Git has against what the code compiles to
difference.py  the first place at which two documents differ

base/, versions/ and overlays/ are for kustomize. An overlay is a cluster; `kubeflow/environments` has a file of its name.
"""
