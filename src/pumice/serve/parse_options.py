"""A command line as the options of a process, checked as a whole."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, TypeVar

from pumice.errors import InputError
from pumice.serve.flag_tables import TABLES
from pumice.serve.flags import Parsed, parse
from pumice.serve.options import (
    CommonOptions,
    ControllerOptions,
    LeaderOptions,
    SchedulerOptions,
    WebhookOptions,
)

_JITTER: Final = 1.2
"""A renewal may come later than the retry period by this factor."""
_Options = TypeVar("_Options", bound=CommonOptions)


@dataclass(frozen=True)
class Told:
    """What a process is told; what is None is not to run."""

    parsed: Parsed
    scheduler: SchedulerOptions | None = None
    controllers: ControllerOptions | None = None
    webhooks: WebhookOptions | None = None

    @property
    def common(self) -> CommonOptions:
        """The options that all have."""
        found = self.scheduler or self.controllers or self.webhooks
        if found is None:
            raise TypeError("nothing is to run")
        return found

    @property
    def leader(self) -> LeaderOptions | None:
        """The options of who is elected, None if there is no election to be had."""
        return self.scheduler or self.controllers


def read_options(process: str, words: Sequence[str]) -> Told:
    """Read the command line of a process: scheduler, controllers, webhooks or all of them.

    Raises:
        InputError: something that cannot be, or cannot be together.
    """
    parsed = parse(TABLES[process], words)
    everything = process == "all"
    values = dict(parsed.values)
    older = values.pop("lock_object_namespace", "")
    if older:
        values["leader_elect_resource_namespace"] = older
        parsed.warnings.append(
            "--lock-object-namespace is deprecated: use --leader-elect-resource-namespace"
        )
    told = Told(
        parsed,
        _filled(SchedulerOptions, values) if everything or process == "scheduler" else None,
        _filled(ControllerOptions, values) if everything or process == "controllers" else None,
        _webhooks(values, everything=everything) if everything or process == "webhooks" else None,
    )
    if told.leader is not None:
        _check_election(told.leader)
    return told


def _filled(kind: type[_Options], values: dict[str, Any]) -> _Options:
    names = {each.name for each in fields(kind)}
    return kind(**{name: value for name, value in values.items() if name in names})


def _webhooks(values: dict[str, Any], *, everything: bool) -> WebhookOptions:
    """Give the options of the webhooks; with all in one, --listen-address is that of metrics."""
    if everything:
        values = {name: value for name, value in values.items() if name != "listen_address"}
    return _filled(WebhookOptions, values)


def _check_election(options: LeaderOptions) -> None:
    """Refuse times with which two could lead at once, or none for long."""
    if not options.leader_elect:
        return
    lease, renew = options.leader_elect_lease_duration_s, options.leader_elect_renew_deadline_s
    retry = options.leader_elect_retry_period_s
    told = math.floor(lease)  # a lease tells others whole seconds
    if not told > renew:
        rounded = "" if told == lease else f", in whole seconds {told}s"
        wanted = f"less than the lease duration of {lease:g}s{rounded}"
        _refuse("renew-deadline", wanted, f"{renew:g}s")
    if not retry > 0:
        _refuse("retry-period", "more than nothing", f"{retry:g}s")
    if not renew > _JITTER * retry:
        wanted = f"more than {_JITTER} times the retry period of {retry:g}s"
        _refuse("renew-deadline", wanted, f"{renew:g}s")
    if not options.leader_elect_resource_name:
        _refuse("resource-name", "the name of a lease", "")


def _refuse(flag: str, wanted: str, found: str) -> None:
    raise InputError(field=f"--leader-elect-{flag}", wanted=wanted, found=found)
