"""Which devices a release is for: a stable share of them, and cohorts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruled_channels import release

from tfx_edge.schemas import Cohort, DeviceInfo

IDS = [DeviceInfo(device_id=f"device-{i}", runtime="2.21.0") for i in range(4000)]


def inside(share: float, bundle: str = "a" * 64) -> set[str]:
    one = release(share=share, bundle=bundle)
    return {device.device_id for device in IDS if one.admits(device)}


@given(st.integers(0, 2**64), st.lists(st.floats(0, 1), min_size=2, max_size=5))
def test_a_device_keeps_its_model_while_the_share_grows(device, shares):
    info = DeviceInfo(device_id=f"d{device}", runtime="2.21.0")
    admitted = [release(share=share).admits(info) for share in sorted(shares)]
    assert admitted == sorted(admitted)


@pytest.mark.parametrize("share", [0.01, 0.05, 0.2, 0.5, 0.9])
def test_a_share_of_the_devices_is_that_share(share):
    # Binomial: five standard deviations.
    assert abs(len(inside(share)) - 4000 * share) < 5 * (4000 * share * (1 - share)) ** 0.5


def test_no_device_is_in_a_share_of_nothing_and_each_in_all():
    assert (len(inside(0)), len(inside(1))) == (0, 4000)


def test_other_devices_come_first_with_another_bundle():
    both = inside(0.2) & inside(0.2, "b" * 64)
    assert abs(len(both) - 160) < 62, "independent: p is 0.04, five standard deviations are 62"


@given(st.text("abcdef0123456789", min_size=64, max_size=64), st.integers(1, 9), st.integers(1, 9))
def test_a_devices_place_depends_on_bundle_and_id_alone(bundle, number, other):
    one, two = (release(share=0.5, bundle=bundle, number=n, rollback_of=r) for n, r in ((number, None), (other, other)))
    assert [one.admits(device) for device in IDS[:20]] == [two.admits(device) for device in IDS[:20]]


DEVICE = DeviceInfo(device_id="one", target="tflm", runtime="2.16.1", region="eu")


@pytest.mark.parametrize(
    ("cohort", "admits"),
    [
        (Cohort(), True),
        (Cohort(targets=("tflm", "litert-cpu")), True),
        (Cohort(targets=("litert-cpu",)), False),
        (Cohort(regions=("eu", "us")), True),
        (Cohort(regions=("us",)), False),
        (Cohort(minimum_runtime="2.16.1"), True),
        (Cohort(minimum_runtime="2.16.2"), False),
        (Cohort(minimum_runtime="2.9"), True),
        (Cohort(below_runtime="2.16.1"), False),
        (Cohort(below_runtime="2.17"), True),
        (Cohort(below_runtime="2.100"), True),
        (Cohort(targets=("tflm",), regions=("us",)), False),
        (Cohort(targets=("tflm",), regions=("eu",), minimum_runtime="2.16", below_runtime="2.17"), True),
    ],
)
def test_a_cohort_is_told_by_target_runtime_and_region_together(cohort, admits):
    assert release(share=1.0, cohort=cohort).admits(DEVICE) is admits


def test_a_device_whose_runtime_cant_run_the_model_isnt_offered_it():
    assert not release(share=1.0, minimum_runtime="2.17.0").admits(DEVICE)
