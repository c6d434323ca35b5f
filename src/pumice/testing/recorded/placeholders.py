"""Stand-ins: what differs from run to run is written as the recording wrote it."""

import re
from collections.abc import Mapping
from typing import Any, Final

from pumice.api.kinds import Manifest
from pumice.cluster.embedded.store import EmbeddedCluster
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
        """Take in the objects that exist now."""
        kinds = [*(kind for kind, _ in KINDS.values()), *_OWNERS]
        for kind in dict.fromkeys(kinds):
            for manifest in cluster.list(kind)[0]:
                self._learn(kind, manifest)

    def read(self, text: str) -> str:
        """Put the scheduled minute of a CronJob in the place of its stand-in."""
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
