"""A cluster with its configuration, and the answers about it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
from markupsafe import Markup

from pumice.api.decisions import Decisions
from pumice.api.duration import parse_duration
from pumice.api.kinds import BUILT_IN, Manifest
from pumice.api.manifests import pointing_to_fields
from pumice.api.times import epoch
from pumice.api.wording import counted, name_hint, value_of
from pumice.diagnosis.changes import Change
from pumice.diagnosis.cluster_state import ClusterState
from pumice.diagnosis.explain import Explanation, explain_job
from pumice.diagnosis.runner import Replay
from pumice.diagnosis.settings import drain_node, nodes_from_text, setting_from_text, use_conf
from pumice.diagnosis.sources import load_job, load_world
from pumice.diagnosis.waiting_jobs import waiting_jobs
from pumice.diagnosis.whatif import Answer, Question, what_if
from pumice.errors import InputError
from pumice.framework.registry import PluginSource, load_plugins
from pumice.library.arguments import PATHS, check_configuration, check_items, check_kind
from pumice.library.tables import Table, render
from pumice.library.workloads import Configuration, log_warnings, read_configuration

_A_CLUSTER = "a cluster, the result of pumice.load"
_COUNTED = {"Node": "node", "Queue": "queue", "PodGroup": "job", "Pod": "pod"}


@dataclass(frozen=True)
class Cluster:
    """Objects, configuration and time; a value that no question changes."""

    state: ClusterState

    def decide(self) -> Decisions:
        """Run one scheduling cycle and return its decisions."""
        return Replay(self.state).decide()

    def waiting(self) -> Table:
        """List the jobs that wait, with the decisive cause of each."""
        rows = [
            (each.name, each.queue, each.cause.code.value, self.state.plain(each.cause.text))
            for each in waiting_jobs(self.state, foresee=False)
        ]
        return Table(("job", "queue", "cause", "why"), rows)

    def objects(self, kind: str) -> list[Manifest]:
        """List the objects of a kind, such as "Node", as manifests.

        Raises:
            InputError: No such kind is known.
        """
        check_kind("kind", kind, str, 'a kind of object such as "Node"')
        known = {each.kind for each in BUILT_IN} | {one["kind"] for one in self.state.objects}
        if kind not in known:
            raise InputError(
                wanted="a known kind of object",
                found=kind,
                field="kind",
                hint=name_hint(kind, known),
            )
        return list(self.state.of_kind(kind).values())

    def __repr__(self) -> str:
        return f"<Cluster of {self._counts()}>"

    def _counts(self) -> str:
        numbers = ((len(self.state.of_kind(kind)), word) for kind, word in _COUNTED.items())
        return ", ".join(counted(n, word) for n, word in numbers)

    def _repr_html_(self) -> str:
        return render(
            "cluster.html",
            counts=self._counts(),
            conf=self.state.conf_source,
            table=Markup(self.waiting()._repr_html_()),  # noqa: S704  (escaped by its template)
            notes=self.state.notes,
        )


@dataclass(frozen=True)
class Explained:
    """Why a job waits; ``details`` has everything, ``to_dict`` the same as plain data."""

    details: Explanation

    @property
    def state(self) -> str:
        """``waits``, ``starts``, ``evicted``, ``runs`` or ``finished``."""
        return self.details.state

    @property
    def codes(self) -> list[str]:
        """The codes of its causes, the decisive one first."""
        return [each.code.value for each in self.details.causes]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, as ``pumice explain -o json`` prints it."""
        return self.details.to_dict()

    def __str__(self) -> str:
        return f"{self.details.name} {self.details.state}: {self.details.text}"

    def _repr_html_(self) -> str:
        return render("explanation.html", **self.to_dict())


@dataclass(frozen=True)
class WhatIf:
    """The effect of a change or a job; ``details`` has everything."""

    details: Answer

    @property
    def settled(self) -> bool:
        """Whether the changed cluster comes to rest."""
        return self.details.settled

    @property
    def starts_in(self) -> float | None:
        """Seconds until the job in question starts; None if it never does."""
        return None if self.details.job is None else self.details.job.in_s

    @property
    def victims(self) -> list[str]:
        """The pods that are evicted for it."""
        return [] if self.details.job is None else list(self.details.job.victims)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain data, as ``pumice whatif -o json`` prints it."""
        return self.details.to_dict()

    def __str__(self) -> str:
        lines = [] if self.details.job is None else [self.details.job.sentence]
        lines += [f"{each.job}: {each.before} -> {each.after}" for each in self.details.jobs]
        return "\n".join(lines) or "nothing changes"

    def _repr_html_(self) -> str:
        job = self.details.job
        return render("answer.html", **{**self.to_dict(), "job": job and job.sentence})


@pointing_to_fields()
def load(
    *sources: str | Path,
    conf: Configuration = None,
    now: str | None = None,
    plugins: Sequence[PluginSource] = (),
) -> Cluster:
    """Read a cluster from manifests, ``kubectl get -o yaml`` output, scenarios or snapshots.

    Args:
        sources: Files or folders; a text with a line break is YAML itself.
        conf: A configuration: a file, or its text; without one, what the sources hold.
        now: Its time, RFC 3339; without one, the latest in its objects.
        plugins: Plugins that the configuration may name beside the built-in ones.

    Raises:
        PumiceError: A source or the configuration cannot be used.
    """
    for each in sources:
        check_kind("sources", each, PATHS, "a file, a folder or a text of several lines")
    check_configuration("conf", conf)
    read = [each if isinstance(each, str) and "\n" in each else Path(each) for each in sources]
    if now is not None:
        check_kind("now", now, str, 'an RFC 3339 time such as "2026-01-15T10:00:19Z"')
    with value_of("now"):
        at = None if now is None else epoch(now)
    state = load_world(read, now=at)
    if conf is not None:
        found = read_configuration(conf)
        state = replace(state, conf=found.text, conf_source=found.source)
    state = replace(state, plugins=load_plugins(plugins))
    log_warnings(state.scheduler_conf, state.conf_source, state.plugins)
    return Cluster(state)


def explain(
    cluster: Cluster, job: str, *, remedies: bool = True, forecast: bool = True
) -> Explained:
    """Explain why a job waits: causes with numbers, nodes, spared pods, what would help.

    Raises:
        InputError: No job, or several, have that name; or it is no cluster.
    """
    check_kind("cluster", cluster, Cluster, _A_CLUSTER)
    check_kind("job", job, str, "the name of a job")
    return Explained(explain_job(cluster.state, job, unblock=remedies, foresee=forecast))


@pointing_to_fields()
def whatif(
    cluster: Cluster,
    job: str | Path = "",
    *,
    conf: Configuration = None,
    settings: Mapping[str, object] | None = None,
    add_nodes: str | int | None = None,
    drain: str | Sequence[str] = (),
    default_runtime: str | None = None,
) -> WhatIf:
    """Try a job or changes on a copy of a cluster.

    Args:
        cluster: The present cluster.
        job: The name of a job of the cluster, or a file with a new one.
        conf: Try this configuration.
        settings: Fields to set, as in ``{"queue/a.capability.cpu": 20}``.
        add_nodes: Number of nodes to add, like the largest; or ``"2=NODE"``.
        drain: A node, or several, to cordon and empty of pods.
        default_runtime: Run time of pods that state none, such as ``"90m"``.

    Raises:
        TypeError: There is neither a job nor a change to try.
        InputError: The job, a change or a value cannot be used.
    """
    if not job and conf is None and not settings and add_nodes is None and not drain:
        raise TypeError("whatif has nothing to try; pass job, conf, settings, add_nodes or drain")
    check_kind("cluster", cluster, Cluster, _A_CLUSTER)
    check_kind("job", job, PATHS, "the name of a job, or a file with a new one")
    with value_of("default_runtime"):
        runtime = None if default_runtime is None else parse_duration(str(default_runtime))
    is_file = bool(job) and Path(job).is_file()
    changes = _changes(cluster.state, conf, settings, add_nodes, drain)
    question = Question(
        job="" if is_file else str(job),
        new_job=load_job(Path(job), cluster.state.now) if is_file else (),
        changes=changes,
        signs_off=bool(changes),
        default_runtime_s=runtime,
    )
    return WhatIf(what_if(cluster.state, question))


def _changes(
    state: ClusterState,
    conf: Configuration,
    settings: Mapping[str, object] | None,
    add_nodes: str | int | None,
    drain: str | Sequence[str],
) -> list[Change]:
    """Make the changes to try, each on the cluster as the ones before it leave it."""
    changes: list[Change] = []

    def change(one: Change) -> None:
        nonlocal state
        changes.append(one)
        state = one(state)

    check_configuration("conf", conf)
    if settings is not None:
        wanted = 'values by field, as in {"queue/a.weight": 3}'
        check_kind("settings", settings, Mapping, wanted)
    drained = [drain] if isinstance(drain, str) else drain
    check_items("drain", drained, str, "the name of a node, or several")
    if conf is not None:
        found = read_configuration(conf)
        log_warnings(found.conf, found.source, state.plugins)
        change(use_conf(found.text, found.source))
    with value_of("settings"):
        for field, value in (settings or {}).items():
            change(setting_from_text(state, f"{field}={_written(value)}"))
    with value_of("add_nodes"):
        if add_nodes is not None:
            change(nodes_from_text(state, str(add_nodes)))
    with value_of("drain"):
        for node in drained:
            change(drain_node(state, node))
    return changes


def _written(value: object) -> str:
    """Write a value of a program as a file would have it.

    Raises:
        InputError: No file could.
    """
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, msgspec.MsgspecError):
        raise InputError(wanted="a text, a number, a list or a mapping", found=value) from None
