"""Self-tests one after the other: one that was interrupted says nothing of a model, several do."""

from pathlib import Path

from tfx_edge.device import trial
from tfx_edge.device.errors import DeviceError
from tfx_edge.device.store import Store
from tfx_edge.schemas.release import Release

TRIALS = 3
"""So often a self-test may take too long or be killed before that counts as the model's fault."""


def tried(store: Store, folder: Path, release: Release, seconds: float) -> str | None:
    """Why a bundle isn't fit to run here; None where it is.

    Args:
        store: remembers interrupted tests by bundle.
        folder: of the bundle.
        release: that it is of.
        seconds: a test that takes longer is ended.

    Raises:
        DeviceError: no test can be made; or it was interrupted, which isn't the model's fault until it has happened again and again.
    """
    state = store.state()
    others = {bundle: count for bundle, count in state.interrupted.items() if bundle != release.bundle}
    try:
        reason = trial.failure(folder, seconds)
    except trial.InterruptedTestError as error:
        count = state.interrupted.get(release.bundle, 0) + 1
        if count < TRIALS:
            store.remember(state.model_copy(update={"interrupted": {**others, release.bundle: count}}))
            raise DeviceError(f"release {release.number}: {error}; it is tried again, {count} of {TRIALS} times") from error
        reason = f"{error}, {count} times"
    if release.bundle in state.interrupted:
        store.remember(state.model_copy(update={"interrupted": others}))
    return reason
