"""Beam's options for pipelines on one machine."""

IN_MEMORY = (
    "--runner=DirectRunner",
    # Without the mode named, newer Beam may hand a pipeline to its Prism runner, a binary that it downloads.
    "--direct_running_mode=in_memory",
    "--direct_num_workers=1",
    # No image is used here. Without one named, TFX builds itself a source package for each Beam component, 4 seconds a piece.
    "--sdk_container_image=none",
)
