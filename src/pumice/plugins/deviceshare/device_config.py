"""The ConfigMap of the device plugins: MIG geometries, Ascend chips, names of resources.

It is the one that the device plugins of nodes read, key ``device-config.yaml``.  Without it, or
for what it leaves out, the defaults apply.  Only what the scheduler needs is read.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import msgspec

from pumice import logs
from pumice.api.meta import ConfigMap, Part
from pumice.api.yaml_text import parse_yaml
from pumice.errors import InputError

KEY: Final = "device-config.yaml"
VGPU_NUMBER: Final = "volcano.sh/vgpu-number"
VGPU_MEMORY: Final = "volcano.sh/vgpu-memory"
VGPU_CORES: Final = "volcano.sh/vgpu-cores"
_log = logs.get("deviceshare")


class MigProfile(Part):
    """Instances of one size."""

    name: str
    memory: int = 0
    count: int = 0


class Geometry(Part):
    """One geometry of a card."""

    group: str
    geometries: tuple[MigProfile, ...] = ()


class CardGeometries(Part):
    """The geometries of cards of some models."""

    models: tuple[str, ...] = ()
    allowed_geometries: tuple[Geometry, ...] = ()


class NvidiaConfig(Part):
    """Names of resources, and geometries by model."""

    resource_count_name: str = VGPU_NUMBER
    resource_memory_name: str = VGPU_MEMORY
    resource_core_name: str = VGPU_CORES
    resource_memory_percentage_name: str = "volcano.sh/vgpu-memory-percentage"
    known_mig_geometries: tuple[CardGeometries, ...] = ()
    gpu_memory_factor: int = 1

    def geometries_of(self, kind: str) -> tuple[Geometry, ...]:
        """Return the geometries of a kind of card, none if the kind is unknown."""
        for each in self.known_mig_geometries:
            if any(model in kind for model in each.models):
                return each.allowed_geometries
        return ()


class AscendTemplate(Part):
    """A size into which a chip can be cut."""

    name: str
    memory: int = 0


class AscendChip(Part):
    """A kind of Ascend chip."""

    common_word: str
    resource_name: str
    resource_memory_name: str = ""
    memory_allocatable: int = 0
    memory_capacity: int = 0
    templates: tuple[AscendTemplate, ...] = ()


class AscendConfig(Part):
    """The kinds of chips, and whether nodes share them in software unless they state otherwise."""

    hami_vnpu_core: bool = False
    configs: tuple[AscendChip, ...] = ()


class DeviceConfig(Part):
    """The whole configuration."""

    nvidia: NvidiaConfig = NvidiaConfig()
    vnpus: AscendConfig = AscendConfig()


_310P: Final = AscendChip(
    common_word="Ascend310P",
    resource_name="huawei.com/Ascend310P",
    resource_memory_name="huawei.com/Ascend310P-memory",
    memory_allocatable=21527,
    memory_capacity=24576,
    templates=(
        AscendTemplate(name="vir01", memory=3072),
        AscendTemplate(name="vir02", memory=6144),
        AscendTemplate(name="vir04", memory=12288),
    ),
)
DEFAULT: Final = DeviceConfig(vnpus=AscendConfig(configs=(_310P,)))


def device_config(found: ConfigMap | None) -> DeviceConfig:
    """Read the ConfigMap; one that cannot be read counts as absent, and is reported once."""
    text = "" if found is None else found.text(KEY)
    return _parsed(text) if text else DEFAULT


@lru_cache(maxsize=4)
def _parsed(text: str) -> DeviceConfig:
    try:
        content: Any = next(iter(parse_yaml(text, KEY)), {})
        return msgspec.convert(_with_wrapper(content), DeviceConfig, strict=False)
    except (InputError, msgspec.ValidationError) as error:
        _log.error("device configuration cannot be used, using the default", why=error)
        return DEFAULT


def _with_wrapper(content: Any) -> Any:
    """Convert the older form, in which ``vnpus`` is the list of chips, to the newer one."""
    if not isinstance(content, Mapping):
        return content
    chips = content.get("vnpus") or {}
    return {
        "nvidia": content.get("nvidia") or {},
        "vnpus": {"configs": chips} if isinstance(chips, list) else chips,
    }
