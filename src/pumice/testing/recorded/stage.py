"""The stage of a recorded controller case: an embedded cluster, controllers, a virtual clock.

Plays the parts that the recording's driver played: the user, the scheduler and the kubelet.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pumice.api.kinds import JOB, POD_GROUP, QUEUE, Manifest
from pumice.clock import VirtualClock
from pumice.cluster.embedded.store import EmbeddedCluster
from pumice.controllers import all_controllers
from pumice.controllers.base import Controller
from pumice.controllers.loop import ControllerLoop
from pumice.errors import ScenarioError
from pumice.testing.recorded.observed import KINDS

_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)")
_RANDOM: Final = re.compile(r"(?<=-)[a-z0-9]{12}$")
_TICK: Final = re.compile(r"-(\d{8})\b")
_STANDS_FOR_TICK: Final = re.compile(r"<tick(\d+)>")
_IP: Final = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_OWNERS: Final = ("ReplicaSet.apps", "DaemonSet.apps", "StatefulSet.apps", "Job.batch")


class Placeholders:
    """Remembers every uid and every random name that was seen in a case."""

    def __init__(self) -> None:
        """Start with nothing seen."""
        self._words: dict[str, str] = {}
        self._first_tick: int | None = None

    def learn(self, cluster: EmbeddedCluster) -> None:
        """Record the objects that exist now."""
        kinds = [*(kind for kind, _ in KINDS.values()), *_OWNERS]
        for kind in dict.fromkeys(kinds):
            for manifest in cluster.list(kind)[0]:
                self._learn(kind, manifest)

    def read(self, text: str) -> str:
        """Put the scheduled minute of a CronJob in place of its placeholder."""
        first = self._first_tick
        if first is None:
            return text
        return _STANDS_FOR_TICK.sub(lambda found: str(first + int(found[1])), text)

    def write(self, value: Any) -> Any:
        """Replace what differs from run to run, in keys and values."""
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {self._text(str(key)): self.write(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.write(one) for one in value]
        return value

    def _learn(self, kind: str, manifest: Manifest) -> None:
        metadata = manifest["metadata"]
        short = kind.partition(".")[0]
        self._words[str(metadata["uid"])] = f"<uid:{short}/{metadata['name']}>"
        if kind == "PersistentVolumeClaim" and "-pvc-" in metadata["name"]:
            self._learn_random(str(metadata["name"]))
        if kind == "Pod":
            for volume in manifest["spec"].get("volumes") or []:
                if "persistentVolumeClaim" in volume:
                    self._learn_random(str(volume["name"]))
        owners = metadata.get("ownerReferences") or []
        if kind == KINDS["jobs"][0] and any(one["kind"] == "CronJob" for one in owners):
            minute = int(metadata["name"].rpartition("-")[2])
            known = minute if self._first_tick is None else self._first_tick
            self._first_tick = min(known, minute)

    def _learn_random(self, name: str) -> None:
        found = _RANDOM.search(name)
        if found:
            self._words[found[0]] = "<rand12>"

    def _text(self, text: str) -> str:
        for word, stand_in in self._words.items():
            if word in text:
                text = text.replace(word, stand_in)
        if self._first_tick is not None:
            first = self._first_tick
            text = _TICK.sub(lambda found: f"-<tick{int(found[1]) - first}>", text)
        if _IP.fullmatch(text):
            return "<ip>"
        return _TIME.sub("<time>", text) if _TIME.fullmatch(text) else text


NAMESPACE: Final = "ns"
_UID: Final = re.compile(r"\$\{uid:([^}]*)/([^}/]*)\}")
_START: Final = 1_767_268_810.0  # ten seconds past a full minute
_QUIET_S: Final = 1.5  # the recording waited until nothing had changed for so long
_LONGEST_S: Final = 30.0
_MINUTE_S: Final = 60
_PAST_MINUTE_S: Final = 2


class Stage:
    """A cluster in which one case is played."""

    def __init__(self, flags: Sequence[str] = ()) -> None:
        """Set up nodes, queues and the controllers with these command line flags."""
        self.clock = VirtualClock(_START)
        self.cluster = EmbeddedCluster(self.clock)
        self.stand_ins = Placeholders()
        self._create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        for index in range(3):
            name = f"node-{index:05}"
            self._create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        for name, spec in (("root", {}), ("default", {"parent": "root"})):
            self._create(_queue(name, {"weight": 1, "reclaimable": True, **spec}))
            status = {**self.cluster.get(QUEUE, "", name)}
            self.cluster.update_status({**status, "status": {"state": "Open"}})
        self.loop = ControllerLoop(self.cluster, _controllers(flags), self.clock)
        self.settle()

    def play(self, step: Mapping[str, Any]) -> None:
        """Carry out a step, then wait until nothing changes."""
        for manifest in step.get("apply") or []:
            self._apply(manifest)
        for change in step.get("patch") or []:
            kind = str(change["kind"])
            place = (kind, self._namespace(kind), self._resolve(change["name"]))
            self.cluster.patch(*place, self._resolve(change["json"]), patch_type="json")
        for change in step.get("set") or []:
            self._set(change)
        for change in step.get("delete") or []:
            kind = str(change["kind"])
            self.cluster.delete(
                kind,
                self._namespace(kind),
                self._resolve(change["name"]),
                grace_s=change.get("gracePeriodSeconds"),
                propagation=change.get("propagation") or "Background",
            )
        self.settle()
        if step.get("wait") is not None:
            self._wait(step["wait"])
            self.settle()

    def settle(self) -> None:
        """Advance time until nothing has changed for a while."""
        latest = self.clock.now() + _LONGEST_S
        end = self.clock.now() + _QUIET_S
        while self._rest() and self.clock.now() < latest:
            end = self.clock.now() + _QUIET_S
        while (due := self.clock.next_at()) is not None and due <= min(end, latest):
            self.clock.advance_to(due)
            if self._rest():
                end = self.clock.now() + _QUIET_S
        self.clock.advance_to(min(end, latest))
        self._rest()
        self.stand_ins.learn(self.cluster)

    def _rest(self) -> bool:
        """Run the controllers; return whether they changed anything."""
        before = self.cluster.version
        self.loop.run_until_quiet()
        return self.cluster.version != before

    def _wait(self, how_long: float | str) -> None:
        """Advance time, with all parts running."""
        now = self.clock.now()
        if how_long == "next-minute":
            until = (now // _MINUTE_S + 1) * _MINUTE_S + _PAST_MINUTE_S
        else:
            until = now + float(how_long)
        while (due := self.clock.next_at()) is not None and due <= until:
            self.clock.advance_to(due)
            self._rest()
        self.clock.advance_to(until)

    def _create(self, manifest: Manifest) -> None:
        """Add an object as it is."""
        self.cluster.create(manifest)

    def _apply(self, manifest: Mapping[str, Any]) -> None:
        """Add an object of a case: in the case's namespace, its status included."""
        resolved: Manifest = self._resolve(manifest)
        metadata = {**resolved["metadata"]}
        group = (
            str(resolved["apiVersion"]).partition("/")[0] if "/" in resolved["apiVersion"] else ""
        )
        kind = f"{resolved['kind']}.{group}" if group else str(resolved["kind"])
        if self._namespace(kind):
            metadata.setdefault("namespace", NAMESPACE)
        self._create({**resolved, "metadata": metadata})

    def _namespace(self, kind: str) -> str:
        known = self.cluster.kinds.get(kind)
        return NAMESPACE if known is None or known.namespaced else ""

    def _resolve(self, value: Any) -> Any:
        if isinstance(value, str):
            text = self.stand_ins.read(value)
            return _UID.sub(lambda found: self._uid(found[1], found[2]), text)
        if isinstance(value, Mapping):
            return {key: self._resolve(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._resolve(one) for one in value]
        return value

    def _uid(self, kind: str, name: str) -> str:
        return str(self.cluster.get(kind, self._namespace(kind), name)["metadata"]["uid"])

    def _set(self, given: Mapping[str, Any]) -> None:
        """Act as the scheduler or the kubelet."""
        change = self._resolve(given)
        if "podgroupOf" in change:
            job = change["podgroupOf"]
            self._set_podgroup(f"{job}-{self._uid(JOB, job)}", change)
        elif "podgroup" in change:
            self._set_podgroup(change["podgroup"], change)
        elif change.get("gone"):
            self.cluster.delete("Pod", NAMESPACE, change["pod"], grace_s=0)
        elif "pod" in change:
            if change.get("node"):
                self.cluster.bind(NAMESPACE, change["pod"], change["node"], {})
            if change.get("phase"):
                self._set_pod(change)
        else:
            raise ScenarioError(wanted="a podgroup or a pod to set", found=dict(given))

    def _set_podgroup(self, name: str, change: Mapping[str, Any]) -> None:
        group = self.cluster.get(POD_GROUP, NAMESPACE, name)
        status = {**(group.get("status") or {}), "phase": change.get("phase")}
        if change.get("conditions") is not None:
            status["conditions"] = change["conditions"]
        self.cluster.update({**group, "status": status})

    def _set_pod(self, change: Mapping[str, Any]) -> None:
        pod = self.cluster.get("Pod", NAMESPACE, change["pod"])
        phase = change["phase"]
        status = {**(pod.get("status") or {}), "phase": phase}
        names = [container["name"] for container in pod["spec"]["containers"]]
        status["containerStatuses"] = [self._container(name, change) for name in names]
        status |= {key: change[key] for key in ("reason", "message") if key in change}
        self.cluster.update_status({**pod, "status": status})

    def _container(self, name: str, change: Mapping[str, Any]) -> Manifest:
        """Write the kubelet's status of a container."""
        phase = change["phase"]
        state: Manifest = {"waiting": {}}
        if phase == "Running":
            state = {"running": {}}
        elif phase in ("Succeeded", "Failed"):
            code = change.get("exitCode", 0 if phase == "Succeeded" else 1)
            state = {"terminated": {"exitCode": code}}
        return {
            "name": name,
            "ready": change.get("ready", phase == "Running"),
            "restartCount": change.get("restartCount", 0),
            "state": state,
        }


def _queue(name: str, spec: Manifest) -> Manifest:
    api_version = "scheduling.volcano.sh/v1beta1"
    return {"apiVersion": api_version, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def _controllers(flags: Sequence[str]) -> tuple[Controller, ...]:
    """Make all controllers, with the flags of Volcano's controller manager that concern them."""
    given = dict(flag.removeprefix("--").split("=", 1) for flag in flags)
    return all_controllers(
        scheduler_names=(given.get("scheduler-name", "volcano"),),
        inherit_owner_annotations=given.get("inherit-owner-annotations", "true") == "true",
        max_requeue_num=int(given.get("max-requeue-num", "15")),
        keys=lambda: ("private", "public"),  # no login happens here
    )
