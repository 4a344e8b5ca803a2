"""EdgePromoter: the channel that a blessed model goes to."""

from pydantic import Field

from tfx_edge.schemas.channel_policy import ChannelPolicy
from tfx_edge.schemas.config import Config
from tfx_edge.schemas.keyring import Keyring
from tfx_edge.schemas.release import CHANNELS, Cohort, Name


class PromotionConfig(Config):
    """Nothing here is a secret: keys are named by reference."""

    channels: str = Field(description="Folder of the channels, on any filesystem that TFX reaches.")
    channel: Name = Field(default=CHANNELS[0], description="The one that is published to.")
    keyring: str | Keyring = Field(description="Path of a keyring.json on the machine that runs EdgePromoter, or a Keyring.")
    cohort: Cohort = Cohort()
    create: bool = Field(
        default=False,
        description="For development: makes canary, beta and stable, or a channel of another name alone, with new keys beside the "
        "keyring's path where there is no channel.",
    )
    policies: dict[str, ChannelPolicy] = Field(default_factory=dict, description="create: of each channel; others have their defaults.")

    def check(self) -> None:
        if isinstance(self.keyring, str) and "://" in self.keyring:
            raise ValueError(
                f"keyring {self.keyring!r:.200}: expected a path on the machine that runs EdgePromoter, for example of a mounted secret"
            )
        if self.create and not isinstance(self.keyring, str):
            raise ValueError("create writes new keys beside a keyring.json; give keyring its path")
        if self.policies and not self.create:
            raise ValueError("policies are for channels that create makes; use `tfx-edge channel policy` for one that is there")
        unknown = [name for name in self.policies if name not in self.created]
        if unknown:
            raise ValueError(f"policies of {', '.join(map(ascii, unknown))}; create makes {', '.join(self.created)}")

    @property
    def created(self) -> tuple[str, ...]:
        """The channels that `create` makes."""
        return CHANNELS if self.channel in CHANNELS else (self.channel,)
