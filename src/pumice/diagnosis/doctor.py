"""The checks of `pumice doctor`: the API server, the installation, and the policy."""

import base64
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, Protocol

from cryptography import x509

from pumice.api.conf import DEFAULT_CONF, parse_conf
from pumice.api.kinds import (
    BUILT_IN,
    CONTROLLERS_LEASE,
    DEFAULT_QUEUE,
    EMBEDDED_BUILD,
    JOB,
    LEASE,
    POD_GROUP,
    QUEUE,
    RESOURCE_QUOTA,
    ROOT_QUEUE,
    SCHEDULER_LEASE,
    SCHEDULER_NAME,
    SYSTEM_NAMESPACE,
    Manifest,
    queue_of,
)
from pumice.api.permissions import CONTROLLERS, SCHEDULER, Component, Grant
from pumice.api.times import epoch
from pumice.api.wording import counted, first_of
from pumice.cluster.base import Cluster
from pumice.cluster.stored_conf import stored_configuration
from pumice.diagnosis.cluster_state import group_of
from pumice.diagnosis.sources import load_world
from pumice.errors import (
    ClusterError,
    ConfError,
    InputError,
    NotFoundError,
    RejectedError,
    ServiceError,
    UnauthorizedError,
    UnavailableError,
)
from pumice.scheduler import Scheduler

_VERSION: Final = "/version"
_TIMEOUT_S: Final = 10.0
_MOST_BYTES: Final = 1 << 20
CRDS: Final = "CustomResourceDefinition.apiextensions.k8s.io"
_VOLCANO: Final = ".volcano.sh"
_LEASES: Final = {"scheduler": SCHEDULER_LEASE, "controllers": CONTROLLERS_LEASE}
_WEBHOOKS: Final = tuple(
    f"{kind}WebhookConfiguration.admissionregistration.k8s.io"
    for kind in ("Mutating", "Validating")
)
_SOON_S: Final = 7 * 86400.0
"""A certificate that expires within this time causes a warning."""
_LARGEST_SKEW_S: Final = 5.0
_PROBE: Final[Manifest] = {
    "apiVersion": "scheduling.volcano.sh/v1beta1",
    "kind": "Queue",
    "metadata": {"name": "pumice-doctor"},
    "spec": {"weight": 1},
}
"""A queue that is tried and never created."""
_APPS: Final = {
    "scheduler": "volcano-scheduler",
    "controllers": "volcano-controller",
    "webhooks": "volcano-admission",
}
"""The label ``app`` of a process's pods."""
_HEALTH_PORT: Final = 11251
_MOST_ANSWER_BYTES: Final = 1 << 16
COMPONENTS: Final = (SCHEDULER, CONTROLLERS)
_NEXT: Final = "apply deploy/pumice.yaml again, or upgrade the chart"
_PENDING: Final = ("", "Pending", "Inqueue")
_CHECK: Final = "quotas"
_NAMED: Final = 3


State = Literal["ok", "warning", "wrong", "unknown"]


@dataclass(frozen=True, kw_only=True)
class Checked:
    """The outcome of one check."""

    check: str
    state: State
    text: str
    next_step: str = ""
    """What to do about it; empty if nothing."""


def ok(check: str, text: str) -> Checked:
    """Return a finding without a problem."""
    return Checked(check=check, state="ok", text=text)


def warning(check: str, text: str, next_step: str) -> Checked:
    """Return a finding that works, but is probably not intended."""
    return Checked(check=check, state="warning", text=text, next_step=next_step)


def wrong(check: str, text: str, next_step: str) -> Checked:
    """Return a problem that keeps jobs from running."""
    return Checked(check=check, state="wrong", text=text, next_step=next_step)


def unknown(check: str, text: str) -> Checked:
    """Return a finding that could not be checked."""
    return Checked(check=check, state="unknown", text=text)


# The API server: whether it answers, accepts the credentials, and which kind it is


class ServedCluster(Cluster, Protocol):
    """A cluster behind an API server."""

    server: str
    """Address of the API server."""

    def read_path(self, target: str, *, timeout_s: float, cap: int) -> Manifest:
        """Return the answer of a path outside the kinds."""

    def read_text(self, target: str, *, timeout_s: float, cap: int) -> str:
        """Return the answer of a path that serves text."""

    def try_create(self, manifest: Manifest) -> Manifest:
        """Have an object admitted as if it were added, without adding it."""


def is_embedded(cluster: ServedCluster) -> bool:
    """Return whether a cluster is one of `pumice up`, which runs all processes.

    Raises:
        ServiceError: no API server answers, or it does not accept the credentials.
    """
    try:
        version = _version(cluster)
    except UnavailableError as error:
        problem = f"cannot reach the cluster at {cluster.server}: {error.problem}"
        raise ServiceError(cluster.server, problem) from error
    except UnauthorizedError as error:
        problem = f"the cluster at {cluster.server} refuses the credentials: {error.problem}"
        raise ServiceError(cluster.server, problem) from error
    except NotFoundError as error:
        problem = f"no API server answers at {cluster.server}: it has no {_VERSION}"
        raise ServiceError(cluster.server, problem) from error
    except RejectedError:  # it answers, but hides its version
        return False
    return str(version.get("gitVersion")).endswith(EMBEDDED_BUILD)


def _version(cluster: ServedCluster) -> Manifest:
    """Read the version; a second time if an expired token was refused, which renews it."""
    try:
        return cluster.read_path(_VERSION, timeout_s=_TIMEOUT_S, cap=_MOST_BYTES)
    except UnauthorizedError:
        return cluster.read_path(_VERSION, timeout_s=_TIMEOUT_S, cap=_MOST_BYTES)


# The installation: CRDs, leaders, webhooks with their certificates


def custom_resources(cluster: Cluster) -> Iterator[Checked]:
    """Check that the CRDs are served, in the versions that Pumice uses."""
    wanted = {f"{kind.plural}.{kind.group}": kind for kind in BUILT_IN if _VOLCANO in kind.group}
    try:
        found = {each["metadata"]["name"]: each for each in cluster.list(CRDS)[0]}
    except ClusterError as error:
        yield unknown("CRDs", error.problem)
        return
    missing = sorted(wanted.keys() - found.keys())
    stale = sorted(
        name
        for name, kind in wanted.items()
        if name in found and kind.version not in _served(found[name])
    )
    if missing:
        yield wrong(
            "CRDs",
            f"{counted(len(missing), 'kind')} not installed: {first_of(missing, 3)}",
            "kubectl apply --server-side -f deploy/crds",
        )
    if stale:
        yield wrong(
            "CRDs",
            f"served in other versions only: {first_of(stale, 3)}",
            "kubectl apply --server-side -f deploy/crds",
        )
    if not missing and not stale:
        yield ok("CRDs", f"all {len(wanted)} kinds are served")


def _served(definition: Manifest) -> set[str]:
    versions = definition.get("spec", {}).get("versions") or ()
    return {each["name"] for each in versions if each.get("served")}


def leaders(cluster: Cluster) -> Iterator[Checked]:
    """Check the holders of the leases, and whether they renew by a clock like ours."""
    for part, name in _LEASES.items():
        check = f"{part}: leader"
        try:
            spec = cluster.get(LEASE, SYSTEM_NAMESPACE, name).get("spec") or {}
        except NotFoundError:
            text = f"no process has ever held the lease {SYSTEM_NAMESPACE}/{name}"
            yield wrong(check, text, f"install Pumice, or start 'pumice serve {part}'")
            continue
        except ClusterError as error:
            yield unknown(check, error.problem)
            continue
        yield _leader(check, part, spec, cluster.now())


def _leader(check: str, part: str, spec: Mapping[str, Any], now: float) -> Checked:
    holder, renewed = spec.get("holderIdentity") or "", spec.get("renewTime") or ""
    if not holder or not renewed:
        return wrong(
            check, "no process holds the lease", f"start 'pumice serve {part}', read its log"
        )
    age, lasts = now - epoch(renewed), float(spec.get("leaseDurationSeconds") or 15)
    if age < -_LARGEST_SKEW_S:
        text = f"{holder} renewed {-age:.0f} s in the future: its clock or this one is wrong"
        return warning(check, text, "synchronise the clocks of the nodes")
    if age > lasts:
        text = f"{holder} renewed last {age:.0f} s ago and lost the lease after {lasts:.0f} s"
        return wrong(check, text, f"see why 'pumice serve {part}' ended or cannot write leases")
    return ok(check, f"{holder} leads")


def webhooks(cluster: ServedCluster) -> Iterator[Checked]:
    """Check the webhooks for our kinds: their service, their certificate, and their answers."""
    found: list[Manifest] = []
    for kind in _WEBHOOKS:
        try:
            found += cluster.list(kind)[0]
        except ClusterError as error:
            yield unknown("webhooks", error.problem)
            return
    ours = [
        (each["metadata"]["name"], webhook)
        for each in found
        for webhook in each.get("webhooks") or ()
        if any(_is_ours(rule) for rule in webhook.get("rules") or ())
    ]
    if not ours:
        yield warning(
            "webhooks",
            "none is registered: defaults are not filled in and bad jobs are not refused",
            "apply deploy/pumice.yaml or set custom.admission_enable in the chart",
        )
    for name, webhook in ours:
        yield from _webhook(cluster, name, webhook)
    if ours:
        yield _answers(cluster)


def _answers(cluster: ServedCluster) -> Checked:
    """Have the API server ask the webhooks about a queue that is not created."""
    check = "webhooks: answer"
    try:
        cluster.try_create(_PROBE)
    except ClusterError as error:
        if "failed calling webhook" in error.problem:
            next_step = "see that the pods of volcano-admission run and can be reached"
            return wrong(
                check, f"jobs and queues are refused meanwhile: {error.problem}", next_step
            )
        if not isinstance(error, RejectedError) or "forbidden" in error.problem:
            return unknown(check, error.problem)
    return ok(check, "a queue that was tried got an answer")


def _is_ours(rule: Mapping[str, Any]) -> bool:
    return any(_VOLCANO in group for group in rule.get("apiGroups") or ())


def _webhook(cluster: Cluster, name: str, webhook: Mapping[str, Any]) -> Iterator[Checked]:
    check, client = f"webhook {name}", webhook.get("clientConfig") or {}
    service = client.get("service")
    if service is not None:
        try:
            cluster.get("Service", service["namespace"], service["name"])
        except NotFoundError:
            text = f"its service {service['namespace']}/{service['name']} does not exist"
            yield wrong(
                check, text, "jobs are refused meanwhile: install it, or remove the webhook"
            )
            return
        except ClusterError as error:
            yield unknown(check, error.problem)
    yield _certificate(check, client.get("caBundle") or "", cluster.now())


def _certificate(check: str, bundle: str, now: float) -> Checked:
    next_step = "run the job volcano-admission-init again"
    if not bundle:
        return wrong(check, "it has no caBundle, so its certificate is not trusted", next_step)
    try:
        loaded = x509.load_pem_x509_certificates(base64.b64decode(bundle))
    except ValueError:
        return wrong(check, "its caBundle holds no certificate", next_step)
    ends = max(each.not_valid_after_utc.timestamp() for each in loaded)
    if ends < now:
        return wrong(
            check, f"its CA certificate expired {(now - ends) / 86400:.0f} days ago", next_step
        )
    if ends - now < _SOON_S:
        return warning(
            check, f"its CA certificate expires in {(ends - now) / 86400:.1f} days", next_step
        )
    return ok(check, f"trusted for {(ends - now) / 86400:.0f} days")


# The processes: whether their pods are ready, by the answer that the kubelet gets too


def processes(cluster: ServedCluster) -> Iterator[Checked]:
    """Check that the pods of each process are ready; one that runs elsewhere has none."""
    try:
        pods = [pod for pod in cluster.list("Pod", SYSTEM_NAMESPACE)[0] if _is_alive(pod)]
    except ClusterError as error:
        yield unknown("processes", error.problem)
        return
    for part, app in _APPS.items():
        ours = [pod for pod in pods if (pod["metadata"].get("labels") or {}).get("app") == app]
        waiting = [pod for pod in ours if not _is_ready(pod)]
        for pod in waiting:
            name = pod["metadata"]["name"]
            yield wrong(
                f"{part}: ready",
                f"{name} is not ready: {_why(cluster, pod)}",
                f"kubectl logs --namespace {SYSTEM_NAMESPACE} {name}",
            )
        if ours and not waiting:
            yield ok(f"{part}: ready", f"{counted(len(ours), 'pod')}, all ready")


def _is_alive(pod: Manifest) -> bool:
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not ended and not pod["metadata"].get("deletionTimestamp")


def _is_ready(one: Manifest) -> bool:
    conditions = (one.get("status") or {}).get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _why(cluster: ServedCluster, pod: Manifest) -> str:
    """Return what the process itself answers, or how its container waits."""
    states = (pod.get("status") or {}).get("containerStatuses") or ()
    waiting = [(each.get("state") or {}).get("waiting") or {} for each in states]
    for each in waiting:
        if each.get("reason"):
            return f"{each['reason']} {each.get('message') or ''}".strip()
    if not any("running" in (each.get("state") or {}) for each in states):
        return f"it is {(pod.get('status') or {}).get('phase') or 'Pending'}"
    name = pod["metadata"]["name"]
    path = f"/api/v1/namespaces/{SYSTEM_NAMESPACE}/pods/{name}:{_HEALTH_PORT}/proxy/readyz"
    try:
        answer = cluster.read_text(path, timeout_s=_TIMEOUT_S, cap=_MOST_ANSWER_BYTES)
    except ClusterError as error:
        answer = error.problem
    return answer.strip().removeprefix("not ready: ")


# The permissions of the service accounts: every call that their processes make


class _Call(NamedTuple):
    """One call that a service account makes."""

    verb: str
    group: str
    resource: str
    name: str
    namespace: str
    why_rare: str
    """Why an ordinary run does not make it; empty if it does."""

    def __str__(self) -> str:
        what = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{self.verb} {what}{f' named {self.name}' if self.name else ''}"


def rights(cluster: Cluster) -> Iterator[Checked]:
    """Ask the API server whether the service accounts may do all that their processes do."""
    for component in COMPONENTS:
        account = f"volcano-{component.name}"
        check = f"permissions of {account}"
        calls = [*_calls(component)]
        try:
            missing = [one for one in calls if not _may(cluster, account, one)]
        except ClusterError as error:
            yield unknown(check, f"cannot be checked: {error.problem}")
            continue
        needed = [str(one) for one in missing if not one.why_rare]
        rare = [f"{one} ({one.why_rare})" for one in missing if one.why_rare]
        if needed:
            yield wrong(check, f"it may not {first_of(needed, 3)}", _NEXT)
        if rare:
            yield warning(check, f"it may not {first_of(rare, 3)}", _NEXT)
        if not missing:
            yield ok(check, f"all {counted(len(calls), 'permission')} are granted")


def _calls(component: Component) -> Iterator[_Call]:
    """Return the calls of a component, except those in namespaces that an installation chooses."""
    for namespace, grants in (("", component.everywhere), (SYSTEM_NAMESPACE, component.at_home)):
        for grant in grants:
            yield from _of_grant(grant, namespace)


def _of_grant(grant: Grant, namespace: str) -> Iterator[_Call]:
    for verb, group, resource in sorted(grant.calls()):
        for name in grant.names or ("",):
            yield _Call(verb, group, resource, name, namespace, grant.unseen)


def _may(cluster: Cluster, account: str, wanted: _Call) -> bool:
    resource, _, subresource = wanted.resource.partition("/")
    about = {
        "verb": wanted.verb,
        "group": wanted.group,
        "resource": resource,
        "subresource": subresource,
        "name": wanted.name,
        "namespace": wanted.namespace,
    }
    review: Manifest = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "metadata": {"name": ""},
        "spec": {
            "user": f"system:serviceaccount:{SYSTEM_NAMESPACE}:{account}",
            "groups": ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM_NAMESPACE}"],
            "resourceAttributes": about,
        },
    }
    return bool((cluster.create(review).get("status") or {}).get("allowed"))


# The configuration, queues, scheduler names and nodes


def configuration(cluster: Cluster) -> Iterator[Checked]:
    """Check the configuration as a scheduler would read it."""
    try:
        text, source = stored_configuration(cluster) or (DEFAULT_CONF, "")
    except ClusterError as error:
        yield unknown("configuration", error.problem)
        return
    if not source:
        yield ok("configuration", "no ConfigMap: the built-in configuration is used")
    try:
        scheduler = Scheduler(parse_conf(text, source=source))
    except ConfError as error:
        yield wrong("configuration", str(error), "pumice config check FILE lists all problems")
        return
    for problem in scheduler.warnings:
        yield warning("configuration", f"{source}: {problem}", "pumice config check FILE explains")
    if source and not scheduler.warnings:
        yield ok("configuration", f"{source} can be used")


def queues(cluster: Cluster) -> Iterator[Checked]:
    """Check that the queues of jobs exist and are open."""
    try:
        known = {each["metadata"]["name"]: each for each in cluster.list(QUEUE)[0]}
        groups = cluster.list(POD_GROUP)[0]
    except ClusterError as error:
        yield unknown("queues", error.problem)
        return
    waiting = Counter(queue_of(each) for each in groups if _phase(each) in _PENDING)
    missing = sorted(waiting.keys() - known.keys() - {ROOT_QUEUE, DEFAULT_QUEUE})
    closed = sorted(name for name in waiting.keys() & known.keys() if not _is_open(known[name]))
    if missing:
        text = f"jobs wait for queues that do not exist: {first_of(missing, 3)}"
        yield wrong("queues", text, f"pumice queue create --name {missing[0]}")
    if closed:
        text = f"jobs wait for queues that are closed: {first_of(closed, 3)}"
        yield warning("queues", text, f"pumice queue operate --name {closed[0]} --action open")
    never = [name for name in (ROOT_QUEUE, DEFAULT_QUEUE) if name not in known]
    if never:
        text = f"the scheduler has not created {' and '.join(never)} yet"
        yield wrong("queues", text, "read the scheduler's log: a webhook may refuse them")
    if not missing and not closed and not never:
        yield ok("queues", f"{counted(len(known), 'queue')}, all queues that jobs wait in are open")


def scheduler_names(cluster: Cluster) -> Iterator[Checked]:
    """Check that gangs do not wait for a scheduler that does not run."""
    try:
        pods = cluster.list("Pod")[0]
    except ClusterError as error:
        yield unknown("scheduler names", error.problem)
        return
    waiting = [pod for pod in pods if _waits(pod) and group_of(pod)]
    others = sorted({str(pod["spec"].get("schedulerName")) for pod in waiting} - {SCHEDULER_NAME})
    if others:
        yield warning(
            "scheduler names",
            f"pods of gangs wait for other schedulers: {first_of(others, 3)}",
            f"set schedulerName: {SCHEDULER_NAME}, or run one with --scheduler-name {others[0]}",
        )
    else:
        yield ok("scheduler names", f"every gang that waits names {SCHEDULER_NAME}")


def nodes(cluster: Cluster) -> Iterator[Checked]:
    """Check that some nodes take pods."""
    try:
        found = cluster.list("Node")[0]
    except ClusterError as error:
        yield unknown("nodes", error.problem)
        return
    ready = [each for each in found if _is_ready(each)]
    closed = [each for each in ready if each.get("spec", {}).get("unschedulable")]
    some = "" if len(ready) == len(found) else f"{len(ready):,} of "
    text = f"{some}{counted(len(found), 'node')} ready, {len(closed) or 'none'} cordoned"
    if len(ready) == len(closed):
        yield wrong("nodes", text, "kubectl get nodes; kubectl uncordon NODE")
    else:
        yield ok("nodes", text)


def _phase(group: Manifest) -> str:
    return str((group.get("status") or {}).get("phase") or "")


def _is_open(queue: Manifest) -> bool:
    return (queue.get("status") or {}).get("state") in (None, "", "Open")


def _waits(pod: Manifest) -> bool:
    return not pod["spec"].get("nodeName") and (pod.get("status") or {}).get("phase") == "Pending"


# Resource quotas that refuse pods of jobs


def quotas(cluster: Cluster) -> Iterator[Checked]:
    """Check that the pods of jobs have room in the quotas of their namespaces."""
    try:
        known = cluster.list(RESOURCE_QUOTA)[0]
        world = load_world([cluster]) if known else None
    except (ClusterError, InputError) as error:
        yield unknown(_CHECK, error.problem if isinstance(error, ClusterError) else str(error))
        return
    if world is not None and JOB in world.hidden:
        yield unknown(_CHECK, world.hidden[JOB])
        return
    if world is None or not world.refusals:
        yield ok(_CHECK, f"{counted(len(known), 'resource quota')}, none refuses pods of a job")
        return
    refused = []
    for group, found in world.refusals.items():
        names = sorted({why.quota for each in found.pods for why in each.why})
        refused.append(
            f"{counted(len(found.pods), 'pod')} of {world.title(group)} (by {', '.join(names)})"
        )
    first = world.title(next(iter(world.refusals)))
    text = f"resource quotas refuse pods: {first_of(refused, _NAMED)}"
    yield warning(_CHECK, text, f"pumice explain {first} has the amounts and what helps")


# All checks, in a useful order

Check = Callable[[ServedCluster], Iterator[Checked]]
INSTALLATION: Final[tuple[Check, ...]] = (
    custom_resources,
    leaders,
    processes,
    rights,
    webhooks,
)
POLICY: Final[tuple[Check, ...]] = (configuration, queues, quotas, scheduler_names, nodes)


def examine_cluster(cluster: ServedCluster) -> list[Checked]:
    """Run every check; an object that one cannot read ends that check and no other.

    Raises:
        ServiceError: no API server answers, or it does not accept the credentials.
    """
    found: list[Checked] = []
    checks = INSTALLATION + POLICY
    if is_embedded(cluster):
        found.append(ok("processes", "'pumice up' runs them all, and serves every kind"))
        checks = POLICY
    for check in checks:
        try:
            found += check(cluster)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            name = check.__name__.replace("_", " ")
            found.append(unknown(name, f"an object has an unexpected form: {error!r}"))
    return found
