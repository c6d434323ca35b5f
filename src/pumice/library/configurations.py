"""A configuration as a program passes it: a file, a text, or nothing for the built-in one."""

from dataclasses import dataclass
from pathlib import Path

from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.conf_files import read_conf_file

Configuration = str | Path | None
"""A file, a text of several lines, or None for the built-in configuration."""


@dataclass(frozen=True)
class ReadConfiguration:
    """A usable configuration, and its source."""

    text: str
    source: str
    conf: SchedulerConf


def read_configuration(given: Configuration) -> ReadConfiguration:
    """Read a configuration.

    Raises:
        InputError: The file cannot be read.
        ConfError: It is not a configuration.
    """
    if given is None:
        text, source = DEFAULT_CONF, "the built-in configuration"
    elif isinstance(given, str) and "\n" in given:
        text, source = given, "the given configuration"
    else:
        text, source = read_conf_file(Path(given))
    return ReadConfiguration(text, source, parse_conf(text, source=source))
