"""Beam's options for pipelines on one machine."""

# Without the mode named, newer Beam may hand a pipeline to its Prism runner, a binary that it downloads.
IN_MEMORY = ("--runner=DirectRunner", "--direct_running_mode=in_memory", "--direct_num_workers=1")
