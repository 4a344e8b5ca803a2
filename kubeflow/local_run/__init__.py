"""Runs a compiled package without a cluster: KFP's driver, launcher and scheduler, emulated on one machine."""
