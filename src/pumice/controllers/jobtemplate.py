"""JobTemplate: its status names the jobs that flows made from it."""

from collections.abc import Iterable
from typing import Final

from pumice.api.kinds import JOB, JOB_TEMPLATE, Manifest
from pumice.controllers.base import Key, Patch, Plan, View
from pumice.controllers.ownership import key_of

BY_TEMPLATE: Final = "volcano.sh/createdByJobTemplate"
"""Label and annotation of a job: ``NAMESPACE.NAME`` of its template."""


class JobTemplateController:
    """Writes ``status.jobDependsOnList``; a job that went stays listed until the next is made."""

    name = "jobtemplate"
    watches: tuple[str, ...] = (JOB_TEMPLATE, JOB)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:
        """Look at a new template, and at the template of a job it does not list yet."""
        if kind == JOB_TEMPLATE:
            return (key_of(manifest),)
        made_from = (manifest["metadata"].get("labels") or {}).get(BY_TEMPLATE) or ""
        namespace, dot, name = made_from.partition(".")
        template = view.get(JOB_TEMPLATE, namespace, name) if dot else None
        job = key_of(manifest)
        if template is None or view.get(JOB, job.namespace, job.name) is None:
            return ()
        return () if job.name in _listed(template) else (key_of(template),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """List the jobs there are, unless there are none."""
        template = view.get(JOB_TEMPLATE, key.namespace, key.name)
        if template is None:
            return Plan()
        label = {BY_TEMPLATE: f"{key.namespace}.{key.name}"}
        names = sorted(job["metadata"]["name"] for job in view.list(JOB, key.namespace, label))
        if not names or names == sorted(_listed(template)):
            return Plan()
        return Plan([Patch(key, {"status": {"jobDependsOnList": names}}, subresource="status")])


def _listed(template: Manifest) -> list[str]:
    return (template.get("status") or {}).get("jobDependsOnList") or []
