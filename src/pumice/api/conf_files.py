"""Files with a scheduler configuration: its plain text, or the ConfigMap that a cluster stores."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from pumice.api.manifests import load_values
from pumice.api.text_files import read_text, shown_name
from pumice.errors import InputError, ManifestError

_SUFFIX: Final = "scheduler.conf"
"""Suffix of a ConfigMap's key whose text is a scheduler configuration."""


def read_conf_file(file: Path, error: type[InputError] = InputError) -> tuple[str, str]:
    """Return the text of a configuration and the name of its place.

    Raises:
        InputError: The file cannot be read, or is a ConfigMap without one configuration; raised
            as ``error``.
    """
    text, name = read_text(file, error), shown_name(file)
    config_map = _config_map(text) if "ConfigMap" in text else None
    if config_map is None:
        return text, name
    data = config_map.get("data")
    found = conf_entries(data)
    if len(found) != 1 or not isinstance(found[0][1], str):
        wanted = f"one text under a key that ends with {_SUFFIX}"
        keys = sorted(map(str, data)) if isinstance(data, dict) else []
        raise error(wanted=wanted, found=keys, field="data", file=name)
    return found[0][1], f"{name}: {found[0][0]}"


def conf_entries(data: Any) -> list[tuple[str, Any]]:
    """Return the keys and values of a ConfigMap's data that are scheduler configurations."""
    entries = data.items() if isinstance(data, Mapping) else ()
    return [(str(key), value) for key, value in entries if str(key).endswith(_SUFFIX)]


def _config_map(text: str) -> dict[str, Any] | None:
    """Return the only document of a text if it is a ConfigMap."""
    try:
        values = load_values(f"{text}\n")
    except ManifestError:  # whoever reads the configuration names the line
        return None
    if len(values) == 1 and isinstance(values[0], dict) and values[0].get("kind") == "ConfigMap":
        return values[0]
    return None
