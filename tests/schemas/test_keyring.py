"""A keyring has references to keys, and no error shows a key that was put there by mistake."""

import json

import pytest

from tfx_edge.schemas import ConfigError, Keyring

PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----"


@pytest.mark.parametrize(
    "keyring",
    [
        {"timestamp": [{"uri": PRIVATE_KEY}]},
        {"timestamp": [{"uri": PRIVATE_KEY.splitlines()[1]}]},
        {"timestamp": [{"uri": PRIVATE_KEY, "key_id": 3}]},
        {"timestamp": [PRIVATE_KEY]},
        {"timestamp": PRIVATE_KEY},
        {"timestamp": {"uri": PRIVATE_KEY}},
        {"roots": {"canary": PRIVATE_KEY}},
    ],
    ids=lambda keyring: str(next(iter(keyring.values())))[:12],
)
def test_a_private_key_that_was_put_into_a_keyring_is_refused_and_never_shown(keyring: dict) -> None:
    for attempt in (lambda: Keyring(**keyring), lambda: Keyring.from_json(json.dumps(keyring))):
        with pytest.raises(ConfigError) as refused:
            attempt()
        assert "MC4CAQ" not in str(refused.value) and len(str(refused.value).splitlines()) == 1
