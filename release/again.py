"""What a channel offers once releases are taken back: older models again, under newer numbers, below all that isn't taken back."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from tfx_edge.release.channel import Channel
from tfx_edge.release.publish import with_release
from tfx_edge.schemas.release import Cohort, Release, ReleaseIndex


@dataclass(frozen=True)
class Return:
    """A way back.

    Attributes:
        taken: the release that is taken back.
        older: the one whose model its devices get again.
    """

    taken: Release
    older: Release


@dataclass(frozen=True)
class Offer:
    """What a channel offers then.

    Attributes:
        index: all of it.
        again: the older models' new releases.
        moved: releases with new numbers and nothing else new.
    """

    index: ReleaseIndex
    again: tuple[Release, ...]
    moved: tuple[Release, ...]


def offer_without(channel: Channel, gone: Collection[Release], returns: Sequence[Return], now: datetime) -> Offer:
    """Takes releases off a channel, and puts older models where they were.

    A device takes the newest release that admits it, and goes to higher numbers alone. So an older model needs a new number, and would with
    it go before releases that came after it and weren't taken back: a rollout that goes well, another cohort's. Those get still newer
    numbers, and stay what they are; their devices have the files already, and report on the new number.

    Args:
        channel: as it was opened.
        gone: releases on offer.
        returns: for those of them that there is a way back from; each is for all devices of the taken one's cohort at once.
        now: UTC.
    """
    returning = {(back.taken.cohort, back.older.bundle): back for back in sorted(returns, key=lambda back: back.taken.number)}
    again = {
        back.older.model_copy(
            update={"cohort": cohort, "share": 1.0, "published": now, "share_since": now, "rollback_of": back.taken.number}
        ): back.older.number
        for (cohort, _), back in returning.items()
    }
    rest = [one for one in channel.index.releases if one not in gone and (one.cohort, one.bundle) not in returning]
    lowest = min(again.values(), default=channel.log.last_number)
    moving = {one: one.number for one in rest if one.number > lowest}
    index = channel.index.model_copy(update={"releases": tuple(one for one in rest if one not in moving)})
    numbered = {}
    for number, (release, _) in enumerate(sorted({**again, **moving}.items(), key=lambda item: item[1]), channel.log.last_number + 1):
        numbered[release] = release.model_copy(update={"number": number})
        index = with_release(index, numbered[release])
    return Offer(index, tuple(numbered[one] for one in again), tuple(one for old, one in numbered.items() if old in moving))


def before(channel: Channel, taken: Release, failed: Collection[str] = ()) -> Release | None:
    """The release to go back to: of the earlier ones for the same devices that which most of them had, and of those the newest.

    A model that is on its way to a few devices is no way back for all of them: nobody knows yet what it does there.

    Args:
        channel: as it was opened.
        taken: the release that is taken back.
        failed: bundles that are taken back together with it.

    Returns:
        None where all were taken back, or their files are gone.
    """
    refused = {taken.bundle, *failed, *channel.log.taken_back}
    earlier = [one for number, one in channel.log.releases.items() if number < taken.number]
    cohorts = (taken.cohort, Cohort())  # what was for all devices was for these as well
    fitting = [one for one in earlier if one.cohort in cohorts and one.bundle not in refused and not missing_files(channel, one)]
    return max(fitting, key=lambda one: (one.share, one.cohort == taken.cohort, one.number), default=None)


def missing_files(channel: Channel, release: Release) -> list[str]:
    """The files of a release, of any time, that the channel no longer has."""
    known = channel.targets.signed.targets
    digests = {path: info.hashes.get("sha256") for path, info in known.items()}
    return [file.path for file in release.files if digests.get(release.target_path(file)) != file.digest]
