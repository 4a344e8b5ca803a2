"""The five-field cron that people write, and the six-field one that Kubeflow Pipelines means.

KFP parses with robfig/cron v1: seconds first, the day of week optional, so that `0 2 * * *` is taken and fires at minute 2 of
every hour. Its days of week are 0 to 6 alone. Where both days are restricted either one suffices, as in Vixie cron.
"""

import re
from datetime import datetime, timedelta, timezone, tzinfo

from cronsim import CronSim, CronSimError

from tfx_edge.schemas import EdgeError

_MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_ITEM = r"(\d{1,2}|[A-Za-z]{3})"
_FIELD = re.compile(rf"\*(/\d+)?|{_ITEM}(-{_ITEM}(/\d+)?)?(,{_ITEM}(-{_ITEM}(/\d+)?)?)*")
# robfig/cron looks five years ahead and then answers the year 1, which the controller takes for overdue at every look.
_HORIZON = timedelta(days=4 * 366)


def six_fields(expression: str) -> str:
    """The cron that KFP must get for what a person wrote.

    >>> six_fields("0 2 * * *")
    '0 0 2 * * *'
    >>> six_fields("30 6 * * 5-7")
    '0 30 6 * * 0,5,6'

    Raises:
        EdgeError: it isn't five plain fields, or never fires.
    """
    text = expression.strip()
    if text.startswith("@"):
        fix = _MACROS.get(text.lower())
        raise EdgeError(f"cron: got {text!r}; macros aren't taken, " + (f"write '{fix}'" if fix else "write five fields, or use interval"))
    fields = text.split()
    if len(fields) == 6:
        raise EdgeError(f"cron: got {text!r} with six fields; write the five without seconds: '{' '.join(fields[1:])}'")
    if len(fields) != 5:
        raise EdgeError(f"cron: got {text!r} with {len(fields)} fields; write five: minute hour day-of-month month day-of-week")
    for field in fields:
        if not _FIELD.fullmatch(field):
            raise EdgeError(f"cron: got {field!r} in {text!r}; " + _fix(field))
    try:
        parsed = CronSim(text, datetime(2000, 1, 1, tzinfo=timezone.utc))
    except CronSimError as error:
        raise EdgeError(
            f"cron: got {text!r}: {str(error)[0].lower()}{str(error)[1:]}; a range goes upwards, and the day must exist"
        ) from None
    if re.search(r"(?<!/)\b7\b", fields[4]):
        fields[4] = ",".join(map(str, sorted({int(day) % 7 for day in parsed.weekdays})))  # type: ignore[arg-type]
    last = parsed.dt
    for _ in range(3):
        try:
            following = next(parsed)
        except StopIteration:
            following = None
        if following is None or following - last > _HORIZON:
            raise EdgeError(f"cron: {text!r} fires less than once in four years, which KFP's controller can't plan; give days that come up")
        last = following
    return " ".join(["0", *fields])


def _fix(field: str) -> str:
    if "#" in field or re.search(r"\d[LW]|^LW?$", field, re.IGNORECASE):
        return "L, W and # aren't known to KFP; name plain days, and let the pipeline leave early on others"
    if "?" in field:
        return "write * for ?"
    if re.fullmatch(r"\d+/\d+", field):
        return f"write a range before the step, for example {field.split('/')[0]}-59/{field.split('/')[1]}, or */{field.split('/')[1]}"
    return "a field is *, */2, or a list of numbers, names (mon, jan) and ranges (1-5, 8-18/2)"


def next_fires(six: str, after: datetime, zone: tzinfo, count: int = 3) -> tuple[datetime, ...]:
    """The next times a six-field cron fires, in UTC; `zone` is what the controller reads it in."""
    times = CronSim(six, after.astimezone(zone))
    return tuple(next(times).astimezone(timezone.utc) for _ in range(count))


def remarks(six: str) -> tuple[str, ...]:
    """What in a cron surprises people."""
    _, _, _, day, _, weekday = six.split()
    if not day.startswith("*") and not weekday.startswith("*"):
        return (f"day of month {day} and day of week {weekday} are both given: it fires on days that match either",)
    if day.startswith("*/") and not weekday.startswith("*"):
        return (f"day of month {day} begins with a star: it fires on days that match both it and day of week {weekday}",)
    return ()
