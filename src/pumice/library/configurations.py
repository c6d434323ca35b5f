"""A configuration as a program passes it: a file, a text, or nothing for the built-in one."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pumice.actions import ACTIONS
from pumice.api.conf import DEFAULT_CONF, SchedulerConf, parse_conf
from pumice.api.named_files import read_conf_file
from pumice.framework.conf_check import check_conf
from pumice.framework.plugin import Plugin
from pumice.framework.registry import known_plugins
from pumice.plugins import builtin_plugins

log = logging.getLogger(__name__)

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


def log_warnings(conf: SchedulerConf, source: str, plugins: Mapping[str, type[Plugin]]) -> None:
    """Log settings without effect, once for a configuration that a program passes.

    Its errors are raised where it is used.
    """
    for problem in check_conf(conf, known_plugins(builtin_plugins(), plugins), ACTIONS):
        if problem.severity != "error":
            log.warning("%s: %s", source, problem)
