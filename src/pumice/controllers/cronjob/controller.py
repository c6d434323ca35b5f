"""The CronJob controller: a job for each scheduled time, and order among finished ones."""

from collections.abc import Iterable

from pumice.api.kinds import CRON_JOB, JOB, Manifest
from pumice.controllers.base import Key, Plan, View
from pumice.controllers.cronjob.sync import CronJobSync
from pumice.controllers.ownership import controller_of, key_of


class CronJobController:
    """Starts jobs by the clock."""

    name = "cronjob"
    watches: tuple[str, ...] = (CRON_JOB, JOB)

    def concerns(self, kind: str, manifest: Manifest, view: View) -> Iterable[Key]:  # noqa: ARG002
        """Look at the CronJob itself, or at the one that controls a job."""
        key = key_of(manifest)
        if kind == CRON_JOB:
            return (key,)
        owner = controller_of(manifest)
        if owner is None or owner["kind"] != "CronJob":
            return ()
        return (Key(CRON_JOB, key.namespace, owner["name"]),)

    def reconcile(self, key: Key, view: View) -> Plan:
        """Tidy up, then start what is due and return when to reconcile again."""
        cron = view.get(CRON_JOB, key.namespace, key.name)
        if cron is None or cron["metadata"].get("deletionTimestamp"):
            return Plan()
        sync = CronJobSync(cron, view)
        sync.tidy()
        again_in_s = None if cron["spec"].get("suspend") else sync.start()
        return Plan(sync.finish(), again_in_s)
