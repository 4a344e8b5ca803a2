"""robfig/cron v1 as Kubeflow Pipelines uses it, written from its documentation: what a server takes a cron for."""

from datetime import datetime, timedelta

_BOUNDS = [(0, 59), (0, 59), (0, 23), (1, 31), (1, 12), (0, 6)]
_NAMES = {
    4: dict(zip(["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], range(1, 13), strict=True)),
    5: dict(zip(["sun", "mon", "tue", "wed", "thu", "fri", "sat"], range(7), strict=True)),
}


def parse(expression):
    """Sets of the six fields and whether a field has a star. Day of week may be left out."""
    fields = expression.split()
    if len(fields) not in (5, 6):
        raise ValueError(f"Expected 5 to 6 fields, found {len(fields)}: {expression}")
    return [_field(i, field) for i, field in enumerate([*fields, "*"][:6])]


def _field(i, text):
    values, star, (least, most) = set(), False, _BOUNDS[i]
    for part in text.split(","):
        span, _, step = part.partition("/")
        if span in ("*", "?"):
            low, high, star = least, most, True
        else:
            ends = [_NAMES.get(i, {}).get(end.lower(), None) if not end.isdigit() else int(end) for end in span.split("-")]
            if None in ends or len(ends) > 2:
                raise ValueError(f"Failed to parse int from {span}")
            low, high = ends[0], ends[-1]
            if step and len(ends) == 1:
                high = most
        if low < least or high > most or low > high or step == "0":
            raise ValueError(f"out of range: {part}")
        values |= set(range(low, high + 1, int(step or 1)))
    return values, star


def fires(expression, after, count):
    """The next fire times, minute by minute; crons with second 0 alone."""
    seconds, minutes, hours, days, months, weekdays = parse(expression)
    assert seconds[0] == {0}
    at = after.replace(second=0, microsecond=0)
    found: list[datetime] = []
    while len(found) < count:
        at += timedelta(minutes=1)
        if at.minute in minutes[0] and at.hour in hours[0] and at.month in months[0]:
            day, weekday = at.day in days[0], at.isoweekday() % 7 in weekdays[0]
            if (day and weekday) if days[1] or weekdays[1] else (day or weekday):
                found.append(at)
    return found
