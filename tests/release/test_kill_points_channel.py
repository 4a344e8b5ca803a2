"""Whatever cuts a change of a channel short, the channel verifies, is as it was or as it is to be, and the change can be made again."""

import sys

import pytest
from killing import ends

SCENARIOS = ("creation", "first_release", "second_release", "promotion", "rolled_back", "ticked", "rotation")
KILLS, FILLS = 24, 6


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_channel_is_old_or_new_and_verifies_however_a_change_ends(scenario: str) -> None:
    found = ends(sys.executable, "killed_channels", scenario, kills=KILLS, fills=FILLS)
    kinds = [end["end"].split()[0] for end in found]
    assert kinds.count("kill") == KILLS and kinds.count("full") == FILLS and kinds.count("power") > 10, kinds
    wrong = [end for end in found if end["wrong"]]
    assert not wrong, f"{len(wrong)} of {len(found)}; the first: {wrong[0]['end']}\n{wrong[0]['wrong']}"
