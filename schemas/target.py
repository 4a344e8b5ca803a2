"""Target profiles: what a device's runtime takes, the budgets that a release sets for it, and what a check found.

A profile is data, `schemas/targets/<name>.json`; a project may bring its own, as a file or written out in the config.
"""

from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from tfx_edge.schemas.config import Config

FOLDER = Path(__file__).parent / "targets"

Tool = Literal["litert", "tflite-micro", "vela", "rules", "aot"]

# What each tool measures; a budget on anything else is refused where it is written.
_MEASURES: dict[str, tuple[str, ...]] = {
    "litert": (),
    "tflite-micro": ("arena_bytes", "arena_used_bytes", "parity_steps", "parity_error"),
    "vela": ("unsupported_ops", "npu_share", "sram_bytes", "dram_bytes", "flash_bytes", "npu_time_ms"),
    "rules": ("unsupported_ops", "npu_share"),
    "aot": ("unsupported_ops", "npu_share"),
}


class OpRule(Config):
    """When a device takes an operator; every condition must hold. Without any it always does."""

    options: dict[str, tuple[float, ...]] = Field(
        default_factory=dict,
        description="Allowed values of its options, by their name in LiteRT's schema, for example {'fusedActivationFunction': [0]}.",
    )
    dtypes: tuple[str, ...] = Field(default=(), description="Element types that it takes besides those of the rules it stands in.")
    ranks: tuple[int, ...] = Field(default=(), description="Numbers of dimensions that its first input may have; empty: any.")
    vector: bool = Field(default=False, description="Its output may have only one dimension greater than 1.")
    max_elements: int | None = Field(default=None, ge=1, description="Most values in its output.")
    constant_inputs: tuple[int, ...] = Field(default=(), description="Inputs, counted from 0, whose values must be in the file.")
    max_inputs: int | None = Field(default=None, ge=1, description="Most inputs.")
    same_dilation: bool = Field(default=False, description="Its dilation must be the same in both directions.")
    unit_strides: bool = Field(default=False, description="A slice's strides must all be 1.")
    keeps_batch: bool = Field(default=False, description="It must not reduce, pack, pad or split along the batch, dimension 0.")
    note: str = Field(default="", description="A limit of which the file tells nothing, so that it isn't checked.")


class OpRules(Config):
    """What a device takes, by operator and by shape."""

    device: str = Field(min_length=1, description="What to call the device, for example Edge TPU.")
    dtypes: tuple[str, ...] = Field(min_length=1, description="NumPy names of the element types that it computes with.")
    max_rank: int | None = Field(default=None, ge=1, description="Most dimensions of a tensor.")
    max_wide_rank: int | None = Field(default=None, ge=1, description="Only so many innermost dimensions may be greater than 1.")
    static_shapes: bool = Field(default=False, description="Every size must be fixed in the file, the batch too.")
    stops_at_first: bool = Field(default=False, description="From the first operator that it doesn't take, all run on the CPU.")
    converts_ends: bool = Field(
        default=False, description="Conversions between float and quantized right at inputs and outputs may stay on the CPU."
    )
    ops: dict[str, OpRule] = Field(description="By LiteRT's name of the operator; one that isn't here isn't taken.")

    def check(self) -> None:
        if not self.ops:
            raise ValueError(f"the rules of {self.device!r} have no operator in ops, so nothing would run there; name those that it takes")


class TargetProfile(Config):
    """A kind of device: which tool judges a model for it, and with which settings."""

    name: str = Field(min_length=1, description="What reports call it.")
    description: str = Field(default="", description="One sentence.")
    tool: Tool = Field(
        description="litert: loads and runs; tflite-micro: runs in TensorFlow Lite Micro; vela: compiles for Ethos-U; "
        "rules: judges by `rules`; aot: compiles with a phone vendor's kit."
    )
    accelerators: tuple[str, ...] = Field(
        default=(), description="Configurations of the device, the default first: Vela's accelerators, or the vendor's chips."
    )
    system_config: str | None = Field(default=None, description="Vela: section of its configuration file that tells clock and memories.")
    memory_mode: str | None = Field(default=None, description="Vela: section that tells where weights and activations lie.")
    vela_config: str | None = Field(default=None, description="Vela: configuration file; None: the one that Vela brings.")
    vendor: str | None = Field(default=None, description="aot: module of the vendor in ai_edge_litert.aot.vendors.")
    kit: str | None = Field(default=None, description="aot: module that the vendor's kit installs.")
    rules: OpRules | None = Field(default=None, description="What tool `rules` judges by.")
    source: tuple[str, ...] = Field(default=(), description="Where rules and settings come from.")

    def check(self) -> None:
        needs = {"rules": ("rules",), "vela": ("accelerators", "system_config", "memory_mode"), "aot": ("accelerators", "vendor", "kit")}
        for field in needs.get(self.tool, ()):
            if not getattr(self, field):
                raise ValueError(f"{self.name!r} with tool {self.tool!r} lacks {field}; give it")

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what a check for this profile measures, each with its unit."""
        return _MEASURES[self.tool]


class Target(Config):
    """A device that a model must suit, and what it may take there. A budget that can't be measured fails the gate."""

    profile: str | TargetProfile = Field(
        description="Name of a profile, for example tflm or ethos-u55; or path of a JSON file, which is read now; or the profile itself."
    )
    accelerator: str | None = Field(default=None, description="One of the profile's accelerators, as ethos-u55-64; None: the first.")
    system_config: str | None = Field(default=None, description="Vela: instead of the profile's.")
    memory_mode: str | None = Field(default=None, description="Vela: instead of the profile's.")
    max_arena_bytes: int | None = Field(
        default=None, ge=1, description="tflm: the tensor arena on the device; the model must load and run in one of this size."
    )
    max_parity_steps: float | None = Field(
        default=None, ge=0, description="tflm: largest difference of a quantized output to what the gate evaluates, in its steps."
    )
    max_parity_error: float | None = Field(
        default=None,
        ge=0,
        description="tflm: the same of any output, as a share of its largest value; None: 1e-4 where it is float, 0.25 where quantized.",
    )
    max_unsupported_ops: int | None = Field(
        default=None, ge=0, description="Operators that may fall back to the CPU; None: 0, or any number where min_npu_share is given."
    )
    min_npu_share: float | None = Field(
        default=None, ge=0, le=1, description="Smallest share of the operators that run on the accelerator, 1 for all."
    )
    max_sram_bytes: int | None = Field(default=None, ge=1, description="ethos-u: on-chip memory for activations and buffers.")
    max_dram_bytes: int | None = Field(default=None, ge=1, description="ethos-u: DRAM for weights and activations.")
    max_flash_bytes: int | None = Field(default=None, ge=1, description="ethos-u: flash for commands and weights.")
    max_npu_time_ms: float | None = Field(
        default=None, gt=0, description="ethos-u: Vela's estimate of one inference, without operators that run on the CPU; milliseconds."
    )

    @field_validator("profile")
    @classmethod
    def _read_file(cls, profile: str | TargetProfile) -> str | TargetProfile:
        # The config goes to other machines, where the file may not be.
        if isinstance(profile, TargetProfile) or profile in profile_names():
            return profile
        try:
            text = Path(profile).read_bytes()
        except (OSError, ValueError):
            raise ValueError(f"expected one of {', '.join(profile_names())}, or the path of a profile's JSON file") from None
        return TargetProfile.from_json(text)

    def check(self) -> None:
        profile = self.resolve()
        for field in self.budgets():
            if _measured(field) not in profile.measures:
                can = [f for f in BUDGETS if _measured(f) in profile.measures]
                raise ValueError(f"{field} with profile {profile.name!r}, which can't measure it; it has {', '.join(can) or 'no budgets'}")
        if self.accelerator is not None and self.accelerator not in profile.accelerators:
            raise ValueError(
                f"accelerator {self.accelerator!r} with profile {profile.name!r}; "
                + (f"give one of {', '.join(profile.accelerators)}" if profile.accelerators else "it has none, leave it out")
            )
        for field in ("system_config", "memory_mode"):
            if getattr(self, field) is not None and profile.tool != "vela":
                raise ValueError(f"{field} with profile {profile.name!r}; only Vela's profiles, ethos-u*, have one")

    def resolve(self) -> TargetProfile:
        """The profile itself."""
        if isinstance(self.profile, TargetProfile):
            return self.profile
        return TargetProfile.from_json((FOLDER / f"{self.profile}.json").read_bytes())

    def budgets(self) -> dict[str, float]:
        """The budgets that are given, by field."""
        return {field: getattr(self, field) for field in BUDGETS if getattr(self, field) is not None}

    def limits(self) -> dict[str, tuple[str, float]]:
        """The bounds to hold, by measurement: the budget's name and value, with the defaults that a profile's tool implies."""
        limits = {_measured(field): (field, value) for field, value in self.budgets().items()}
        measures = self.resolve().measures
        if "unsupported_ops" in measures and "npu_share" not in limits:
            limits.setdefault("unsupported_ops", ("max_unsupported_ops", 0))
        return limits


BUDGETS = tuple(name for name in Target.model_fields if name.startswith(("max_", "min_")))


def profile_names() -> tuple[str, ...]:
    """Names of the profiles that come with the package.

    >>> "tflm" in profile_names()
    True
    """
    return tuple(sorted(path.stem for path in FOLDER.glob("*.json")))


class OpPlacement(Config):
    """Operators of one kind that run in the same place for the same reason."""

    operator: str = Field(description="LiteRT's name.")
    count: int = Field(ge=1)
    runs_on: str = Field(description="For example NPU or CPU; nowhere, where the target can't run it at all.")
    reason: str = Field(default="", description="Why not on the accelerator; empty where it is.")
    output: str = Field(default="", description="Output tensor of the first of them.")


class TargetReport(Config):
    """What a check found for one target. The model suits it only when `reasons` is empty."""

    profile: str
    tool: str = Field(description="What judged the model, with its version.")
    measurements: dict[str, float] = Field(description="By name, each with its unit: arena_bytes, npu_time_ms, npu_share.")
    ops: tuple[OpPlacement, ...] = Field(description="In the model's order.")
    reasons: tuple[str, ...] = Field(description="Why the model doesn't suit the target, each a line that a person can act on.")


def _measured(budget: str) -> str:
    """What a budget bounds: max_arena_bytes bounds arena_bytes."""
    return budget.split("_", 1)[1]
