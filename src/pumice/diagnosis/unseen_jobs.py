"""Volcano jobs that no cluster has seen: they have no uid, and so their pod groups have no name.

An embedded cluster gives each a uid, by which its controllers find its objects.  Here that
is added before objects go in and removed when they come out.
"""

import zlib
from collections.abc import Iterable

from pumice.api.annotations import GROUP_NAME
from pumice.api.kinds import Manifest
from pumice.controllers.base import controlled_by, controller_of
from pumice.controllers.job.state import podgroup_name
from pumice.diagnosis.cluster_state import key_of


def owner_of(manifest: Manifest) -> str:
    """Name the Volcano job that controls an object, empty if none does."""
    if not manifest["metadata"].get("ownerReferences"):
        return ""
    owner = controller_of(manifest)
    if owner is None or owner.get("kind") != "Job" or "volcano" not in str(owner.get("apiVersion")):
        return ""
    return f"{manifest['metadata'].get('namespace') or 'default'}/{owner.get('name')}"


class UnseenJobs:
    """The jobs of a world that have no uid of their own."""

    def __init__(self, jobs: Iterable[Manifest]) -> None:
        self._jobs: dict[str, Manifest] = {}
        """Key to the job with the uid it is given."""
        self._names: dict[str, tuple[str, str]] = {}
        """Key of a pod group to its name in the world and in the cluster."""
        for job in jobs:
            if not job["metadata"].get("uid"):
                self.add(job)

    def __bool__(self) -> bool:
        """Return whether there are any."""
        return bool(self._jobs)

    def add(self, job: Manifest) -> None:
        """Assign a job a uid, the same one each time."""
        key, meta = key_of(job), job["metadata"]
        uid = f"job-{zlib.crc32(key.encode()):08x}"
        self._jobs[key] = {**job, "metadata": {**meta, "uid": uid}}
        self._names[key] = str(meta["name"]), podgroup_name(self._jobs[key])

    def linked(self, one: Manifest) -> Manifest:
        """Return an object as the cluster has it."""
        if not self._jobs:
            return one
        if one["kind"] == "Job":
            known = self._jobs.get(key_of(one))
            uid = {} if known is None else {"uid": known["metadata"]["uid"]}
            return {**one, "metadata": {**one["metadata"], **uid}}
        if one["kind"] == "PodGroup" and key_of(one) in self._jobs:
            return self._with(one, key_of(one), self._names[key_of(one)][1])
        owner = owner_of(one)
        return self._with(one, owner, "") if owner and owner in self._jobs else one

    def unlinked(self, one: Manifest) -> Manifest:
        """Return an object as the world has it."""
        key = key_of(one) if one["kind"] == "Job" else owner_of(one)
        if key not in self._jobs:
            return one
        meta = {**one["metadata"]}
        if one["kind"] == "Job":
            meta.pop("uid", None)
            return {**one, "metadata": meta}
        references = meta.get("ownerReferences") or ()
        meta["ownerReferences"] = [{**each, "uid": ""} for each in references]
        name, stored = self._names[key]
        if one["kind"] == "PodGroup" and meta["name"] == stored:
            meta["name"] = name
        return _in_group({**one, "metadata": meta}, stored, name)

    def _with(self, one: Manifest, job: str, new_name: str) -> Manifest:
        name, stored = self._names[job]
        meta = {**one["metadata"], "ownerReferences": [controlled_by(self._jobs[job])]}
        if new_name:
            meta["name"] = new_name
        return _in_group({**one, "metadata": meta}, name, stored)


def _in_group(one: Manifest, old: str, new: str) -> Manifest:
    """Return an object that names another pod group instead of one."""
    meta = one["metadata"]
    marks = meta.get("annotations") or {}
    if marks.get(GROUP_NAME) != old:
        return one
    return {**one, "metadata": {**meta, "annotations": {**marks, GROUP_NAME: new}}}
