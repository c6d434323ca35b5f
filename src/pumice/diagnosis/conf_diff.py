"""Two configurations side by side: who decides what, the first cycle, and the settled outcome."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from pumice.actions import ACTIONS
from pumice.api.conf import SWITCHES, SchedulerConf, parse_conf
from pumice.api.decisions import Decisions
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.conf_in_cluster import check_in_cluster
from pumice.diagnosis.played import Terms
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.settings import use_conf
from pumice.diagnosis.signoff_tables import Row, Table, tables_of
from pumice.diagnosis.whatif import Answer, Question, what_if
from pumice.errors import ConfError
from pumice.framework.conf_check import check_conf, errors_of
from pumice.framework.plugin import HOOKS, Plugin
from pumice.framework.registry import deciding_order

_SIDES: Final = ("old", "new")
_WORDS: Final = {
    **{switch.key: switch.doc for switch in SWITCHES},
    "compare_victim_queues": "which queue loses tasks first",
    "gang_evictable": "which tasks a whole job may evict",
    "job_valid": "whether a job can be scheduled at all",
}
"""What switches, and hooks without one, decide."""


@dataclass(frozen=True, kw_only=True)
class ConfDiff:
    """What differs between two configurations in one cluster."""

    deciding: list[Row]
    """What is decided, and by which plugins on both sides."""
    settings: list[Row]
    """Actions and arguments on both sides."""
    warnings: list[Row]
    """Of which side, and the warning."""
    first_cycle: list[Row]
    """A pod, and what the first cycle decides about it on both sides."""
    outcome: Answer | None
    """What becomes of the cluster once nothing changes any more; None without a cluster."""

    def tables(self) -> list[Table]:
        """Return all of it as tables, the totals first, without those that have no rows."""
        found = [
            *([] if self.outcome is None else _totals(self.outcome)),
            Table("Warnings", ("side", "warning"), self.warnings),
            Table("Who decides what", ("what", *_SIDES), self.deciding),
            Table("Actions and arguments", ("setting", *_SIDES), self.settings),
            Table("First cycle", ("pod", *_SIDES), self.first_cycle),
            *([] if self.outcome is None else _outcome(self.outcome)),
        ]
        return [each for each in found if each.rows]

    def to_dict(self) -> dict[str, Any]:
        """Return all as plain data."""
        return {
            "deciding": [dict(zip(("what", *_SIDES), row, strict=True)) for row in self.deciding],
            "settings": [dict(zip(("name", *_SIDES), row, strict=True)) for row in self.settings],
            "warnings": [dict(zip(("side", "text"), row, strict=True)) for row in self.warnings],
            "first_cycle": [
                dict(zip(("pod", *_SIDES), row, strict=True)) for row in self.first_cycle
            ],
            "outcome": None if self.outcome is None else self.outcome.to_dict(),
        }


def diff_confs(
    old: ClusterState,
    new_text: str,
    new_source: str,
    plugins: Mapping[str, type[Plugin]],
    terms: Terms | None = None,
) -> ConfDiff:
    """Compare the configuration of a cluster with another one.

    Raises:
        ConfError: One of them cannot be used.
    """
    before, after = old.scheduler_conf, parse_conf(new_text, source=new_source)
    new = replace(old, conf=new_text, conf_source=new_source)
    for source, conf in ((old.conf_source, before), (new_source, after)):
        if errors := errors_of(check_conf(conf, plugins, ACTIONS)):
            raise ConfError(errors, file=source)
    has_cluster = bool(old.objects)
    asked = Question(
        changes=[use_conf(new_text, new_source)], signs_off=True, **vars(terms or Terms())
    )
    return ConfDiff(
        deciding=_deciding(before, after, plugins),
        settings=[*_settings(before, after)],
        warnings=[
            (side, str(problem))
            for side, world in zip(_SIDES, (old, new), strict=True)
            for problem in _problems(world, plugins, has_cluster=has_cluster)
        ],
        first_cycle=_first_cycle(old, new) if has_cluster else [],
        outcome=what_if(old, asked) if has_cluster else None,
    )


def _problems(
    world: ClusterState, plugins: Mapping[str, type[Plugin]], *, has_cluster: bool
) -> list[Any]:
    conf = world.scheduler_conf
    found = check_conf(conf, plugins, ACTIONS)
    return [*found, *(check_in_cluster(conf, plugins, world) if has_cluster else ())]


# Who decides what


def _deciding(
    old: SchedulerConf, new: SchedulerConf, plugins: Mapping[str, type[Plugin]]
) -> list[Row]:
    """Return what other plugins decide, or the same in another order; hooks of one switch once."""
    sides = [
        {hook: ", then ".join(tiers) for hook, _, _, tiers in deciding_order(conf, plugins)}
        for conf in (old, new)
    ]
    found: dict[str, Row] = {}
    for name, hook in HOOKS.items():
        left, right = (side.get(name, "no plugin") for side in sides)
        words = _WORDS.get(hook.switch or name, "")
        if words and left != right:
            found.setdefault(words, (words, left, right))
    return list(found.values())


def _settings(old: SchedulerConf, new: SchedulerConf) -> Iterator[Row]:
    """Yield actions and arguments that differ."""
    if old.actions != new.actions:
        yield ("actions", ", ".join(old.actions), ", ".join(new.actions))
    left, right = _arguments(old), _arguments(new)
    for name in {**left, **right}:
        if left.get(name) != right.get(name):
            yield (name, left.get(name, "not set"), right.get(name, "not set"))


def _arguments(conf: SchedulerConf) -> dict[str, str]:
    entries = [(entry.name, entry.arguments) for tier in conf.tiers for entry in tier.plugins]
    several = [*entries, *conf.configurations.items()]
    return {f"{who} {key}": str(value) for who, given in several for key, value in given.items()}


# What happens


def _first_cycle(old: ClusterState, new: ClusterState) -> list[Row]:
    left, right = (_fates(Replay(world).decide()) for world in (old, new))
    on_nodes = {key for key, pod in old.of_kind("Pod").items() if pod["spec"].get("nodeName")}
    idle = {pod: "stays" if pod in on_nodes else "waits" for pod in sorted({*left, *right})}
    rows = ((pod, left.get(pod, none), right.get(pod, none)) for pod, none in idle.items())
    return [row for row in rows if row[1] != row[2]]


def _fates(decisions: Decisions) -> dict[str, str]:
    """Describe what a cycle decides about pods."""
    found = {pod: f"bound to {node}" for pod, node in decisions.binds.items()}
    found |= {pod: f"promised {node}" for pod, node in decisions.pipelined.items()}
    for pod in decisions.evictions:
        whom = decisions.beneficiaries.get(pod, "")
        found[pod] = f"evicted for {whom}" if whom else "evicted"
    return found


def _totals(answer: Answer) -> Iterator[Table]:
    if answer.storm is not None:
        yield Table("Does not settle", ("",), [(str(answer.storm["text"]),)])
    if answer.signoff is not None:
        yield from tables_of(answer.signoff, _SIDES)


def _outcome(answer: Answer) -> Iterator[Table]:
    when = "once nothing changes any more" if answer.settled else "at one moment"
    columns = ("job", *_SIDES)
    yield Table(f"Jobs, {when}", columns, [(e.job, e.before, e.after) for e in answer.jobs])
    yield Table(f"Pods, {when}", ("pod", *_SIDES), [(p, *both) for p, both in answer.pods.items()])
