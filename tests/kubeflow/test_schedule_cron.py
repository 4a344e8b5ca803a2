"""Five fields to six: what KFP then does equals what was written."""

import random
from datetime import datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
import robfig_cron
from cronsim import CronSim

from tfx_edge.kubeflow.schedule.cron import next_fires, remarks, six_fields
from tfx_edge.kubeflow.schedule.reconcile import _until_clear
from tfx_edge.schemas import EdgeError

START = datetime(2027, 3, 1, 12, 30, tzinfo=timezone.utc)


def random_cron(draw):
    minute = draw.choice(["0", "*/20", "5,35", "10-40/15"])
    hour = draw.choice(["*", "2", "8-18/5", "*/6"])
    day = draw.choice(["*", "13", "1,15", "*/2", "10-20"])
    month = draw.choice(["*", "jan-jun", "3,4", "*/2"])
    weekday = draw.choice(["*", "5", "7", "5-7", "MON-FRI", "sun,wed", "1-7/2"])
    return f"{minute} {hour} {day} {month} {weekday}"


@pytest.mark.parametrize("seed", range(40))
def test_kfps_parser_fires_when_the_five_fields_say(seed):
    five = random_cron(random.Random(seed))
    six = six_fields(five)
    as_written = [next(walk) for walk in [CronSim(five, START)] for _ in range(3)]
    assert robfig_cron.fires(six, START, 3) == as_written == list(next_fires(six, START, timezone.utc))


def test_five_fields_sent_as_they_are_would_fire_hourly():
    assert robfig_cron.parse("0 2 * * *")[2][0] == set(range(24))


@pytest.mark.parametrize(
    "text", ["@daily", "0 0 2 * * *", "0 2 * *", "0 0 L * *", "0 0 15W * *", "0 0 * * 5#2", "0 0 ? * 1", "5/10 * * * *"]
)
@pytest.mark.parametrize("pad", ["", " "])
def test_what_kfp_has_not_is_refused_in_one_line(text, pad):
    with pytest.raises(EdgeError) as caught:
        six_fields(pad + text)
    assert text in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 4,6 *", "0 0 29 2 */7", "61 * * * *", "0 0 * * 5-1"])
def test_what_never_or_hardly_fires_is_refused(text):
    with pytest.raises(EdgeError, match="cron"):
        six_fields(text)


def test_both_days_are_remarked():
    assert "either" in remarks(six_fields("0 0 13 * 5"))[0]
    assert remarks(six_fields("0 0 * * 5")) == ()


def test_fire_times_follow_the_controllers_zone():
    (first, *_) = next_fires(six_fields("0 2 * * *"), START, ZoneInfo("Asia/Tokyo"))
    assert first == datetime(2027, 3, 1, 17, 0, tzinfo=timezone.utc)


@pytest.mark.parametrize("offset", range(-60, 61, 10))
def test_a_replacement_stays_clear_of_a_fire_time(offset):
    fire = datetime(2027, 3, 1, 2, 0, tzinfo=timezone.utc)
    now = fire + timedelta(seconds=offset)
    then = now + timedelta(seconds=_until_clear(["0 0 2 * * *", None], timezone.utc, now))
    assert abs(then - fire) >= timedelta(seconds=30)
    assert then == now or abs(now - fire) <= timedelta(seconds=30)


def test_what_fires_all_the_time_is_not_waited_for():
    assert _until_clear(["0 * * * * *"], timezone.utc, START) == 0
