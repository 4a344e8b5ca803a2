"""Which device gets which release."""

import pytest

from tfx_edge.schemas import BundleFile, Cohort, ComponentConfig, ConfigError, DeviceInfo, Release, ReleaseIndex
from tfx_edge.schemas.release import rollout_position

FILES = tuple(BundleFile(path=path, digest="0" * 64, size_bytes=1) for path in ("tflite", "edge/manifest.json", "edge/golden.npz"))
TIME = "2030-01-01T00:00:00Z"


def release(number: int, **more: object) -> Release:
    return Release(number=number, published=TIME, share_since=TIME, **{"bundle": f"{number:064x}", "files": FILES, **more})


def device(number: int, **more: str) -> DeviceInfo:
    return DeviceInfo(device_id=f"device-{number}", **{"runtime": "2.21.0", **more})


def test_a_device_that_has_a_bundle_keeps_it_while_the_share_grows() -> None:
    admitted = [{n for n in range(2_000) if release(1, share=share).admits(device(n))} for share in (0, 0.1, 0.5, 1)]
    assert admitted[0] == set() and len(admitted[3]) == 2_000
    assert admitted[1] < admitted[2] < admitted[3]
    # four standard deviations of a binomial count
    assert abs(len(admitted[1]) - 200) < 54 and abs(len(admitted[2]) - 1_000) < 90


def test_another_bundle_comes_to_other_devices_first() -> None:
    first, second = ({n for n in range(2_000) if rollout_position(f"{b:064x}", f"device-{n}") < 0.1} for b in (1, 2))
    assert len(first & second) < 0.3 * len(first)


@pytest.mark.parametrize(
    ("cohort", "more", "admits"),
    [
        (Cohort(), {}, True),
        (Cohort(targets=("tflm",)), {}, False),
        (Cohort(targets=("tflm", "litert-cpu")), {}, True),
        (Cohort(regions=("eu",)), {"region": "us"}, False),
        (Cohort(minimum_runtime="2.9"), {"runtime": "2.10.0"}, True),
        (Cohort(minimum_runtime="2.10"), {"runtime": "2.9.0"}, False),
        (Cohort(below_runtime="2.10"), {"runtime": "2.9.0"}, True),
        (Cohort(below_runtime="2.10"), {"runtime": "2.10.0"}, False),
    ],
)
def test_a_cohort_is_of_target_runtime_and_region(cohort: Cohort, more: dict[str, str], admits: bool) -> None:
    assert cohort.admits(device(1, **more)) is admits


def test_a_device_takes_the_newest_release_that_admits_it_and_that_its_runtime_can_run() -> None:
    index = ReleaseIndex(
        channel="canary", releases=(release(3, minimum_runtime="99"), release(2, cohort=Cohort(regions=("eu",))), release(1))
    )
    assert [index.offered(device(1, region=region)).number for region in ("eu", "us")] == [2, 1]


@pytest.mark.parametrize("path", ["../tflite", "/tflite", "edge/../../x", ".hidden", "a//b", "edge/.x", ""])
def test_a_file_stays_within_its_bundle(path: str) -> None:
    with pytest.raises(ConfigError, match="BundleFile.path: got .*expected a relative path"):
        BundleFile(path=path, digest="0" * 64, size_bytes=1)


def test_a_release_without_its_self_test_is_refused() -> None:
    with pytest.raises(ConfigError, match="files lack edge/golden.npz"):
        release(1, files=FILES[:2])


def test_an_index_counts_down() -> None:
    with pytest.raises(ConfigError, match="expected falling numbers"):
        ReleaseIndex(channel="canary", releases=(release(1), release(2)))


def test_a_line_break_in_a_key_does_not_break_the_line_of_the_error() -> None:
    with pytest.raises(ConfigError) as error:
        ComponentConfig(env={"a\rb": "c"})
    assert len(str(error.value).splitlines()) == 1
