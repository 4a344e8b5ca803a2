"""Recurring runs on a Kubeflow Pipelines server, reconciled with `schedules.yaml`. Needs no TFX.

declaration.py (what the file wants) and server.py (what the server has, over connection.py) -> plan.py (steps) -> reconcile.py.
"""
