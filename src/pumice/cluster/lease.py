"""Election of the active process by a Lease, as in all Kubernetes components.

Used by serving processes; asks a cluster without a fence of its own.  Whether this process leads
depends on its own steady clock alone: no wall clock, and no late answer, can make
it lead longer than it may.
"""

import threading
import time
import zlib
from collections.abc import Callable
from typing import Any, Final

from pumice import logs
from pumice.api.kinds import LEASE, Manifest
from pumice.api.times import rfc3339_micro
from pumice.cluster.base import Cluster
from pumice.errors import AlreadyExistsError, ConflictError, NotFoundError

_JITTER: Final = 0.2  # of the retry period, so that candidates do not ask in step

_log = logs.get("lease")


class LeaseElector:
    """One candidate for a lease.

    A holder counts as gone once its lease was not renewed for ``lease_s`` as observed here.
    Others do the same, for the whole seconds that a Lease can store; so this process leads
    only until ``renew_s``, which must be less, after it asked for the renewal granted last.
    ``clock`` is monotonic and need not show the time.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        namespace: str,
        name: str,
        identity: str,
        lease_s: float = 15.0,
        renew_s: float = 10.0,
        retry_s: float = 2.0,
        clock: Callable[[], float] = time.monotonic,
        on_won: Callable[[], None] = lambda: None,
    ) -> None:
        """Make one; ``on_won`` is called once the lease is taken, before this process leads."""
        self._cluster = cluster
        self._namespace = namespace
        self._name = name
        self.identity = identity
        self._lease_s = lease_s
        self._renew_s = renew_s
        self._retry_s = retry_s
        self._clock = clock
        self._on_won = on_won
        self._lease: Manifest | None = None
        self._seen_at = 0.0
        self._leads_until: float | None = None
        self._tries = 0
        self.led = threading.Event()
        """Set once this process has led."""

    def is_leader(self) -> bool:
        """Return whether this process may act now."""
        until = self._leads_until
        return until is not None and self._clock() < until

    @property
    def lost(self) -> bool:
        """Whether this process led and does so no more; it never will again."""
        return self.led.is_set() and not self.is_leader()

    @property
    def holder(self) -> str:
        """The known holder of the lease; empty if none."""
        return str(_spec(self._lease).get("holderIdentity") or "")

    def run(self, stop: threading.Event) -> None:
        """Try for the lease and keep it until stopped, or until it is lost.

        A lease that is still held when stopped is released.
        """
        while not stop.is_set() and not self.lost:
            self.step()
            stop.wait(self._pause())
        if self.is_leader():
            self.release()

    def step(self) -> bool:
        """Try once to get or to keep the lease; return whether this process leads."""
        if not self.lost:
            self._tries += 1
            try:
                self._try()
            except (ConflictError, AlreadyExistsError):
                _log.v(4).info("another candidate was faster", lease=self._name)
                self._forget_if_taken()
            except Exception as error:  # noqa: BLE001  # whatever it is, the next try may do better
                _log.warning("cannot read or renew the lease", lease=self._name, error=error)
        return self.is_leader()

    def release(self) -> None:
        """Release the lease, so that another process need not wait for it to expire."""
        lease, self._leads_until = self._lease, None
        if lease is None:
            return
        now = rfc3339_micro(self._cluster.now())
        given = {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": now}
        try:
            self._lease = self._cluster.update({**lease, "spec": {**_spec(lease), **given}})
            _log.info("released the lease", lease=self._name)
        except Exception as error:  # noqa: BLE001  # it runs out by itself
            _log.warning("cannot release the lease", lease=self._name, error=error)

    def _pause(self) -> float:
        if self.is_leader():
            return self._retry_s
        draw = zlib.crc32(f"{self.identity} {self._tries}".encode()) / 2**32
        return self._retry_s * (1.0 + _JITTER * draw)

    def _try(self) -> None:
        asked = self._clock()
        try:
            if self._lease is None or not self.is_leader():
                self._observe(self._cluster.get(LEASE, self._namespace, self._name))
            if self._lease is not None and self._free():
                self._won(self._cluster.update(self._renewed(self._lease)), asked)
        except NotFoundError:  # never made, or deleted
            self._won(self._cluster.create(self._first()), asked)

    def _forget_if_taken(self) -> None:
        """Check the holder after a conflict; another one ends the lead of this process."""
        try:
            self._observe(self._cluster.get(LEASE, self._namespace, self._name))
        except Exception as error:  # noqa: BLE001  # the lead runs out by itself
            _log.warning("cannot read or renew the lease", lease=self._name, error=error)

    def _observe(self, lease: Manifest) -> None:
        """Record the lease; the time of a change is when it is seen here."""
        known = self._lease
        if known is None or _record(known) != _record(lease):
            self._seen_at = self._clock()
        self._lease = lease
        if self.holder != self.identity:
            self._leads_until = None

    def _free(self) -> bool:
        if self.holder in ("", self.identity):
            return True
        lasts = float(_spec(self._lease).get("leaseDurationSeconds") or self._lease_s)
        return self._clock() >= self._seen_at + lasts

    def _won(self, lease: Manifest, asked: float) -> None:
        self._lease = lease
        self._seen_at = self._clock()
        if not self.led.is_set():
            self._on_won()
        self._leads_until = asked + self._renew_s
        if self.is_leader() and not self.led.is_set():
            _log.info(
                "became leader", lease=f"{self._namespace}/{self._name}", identity=self.identity
            )
            self.led.set()

    def _first(self) -> Manifest:
        """Make the lease that does not exist yet."""
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace},
            "spec": self._terms(acquired="", transitions=0),
        }

    def _renewed(self, lease: Manifest) -> Manifest:
        """Return a lease acquired or renewed by this process."""
        spec = _spec(lease)
        mine = spec.get("holderIdentity") == self.identity
        transitions = int(spec.get("leaseTransitions") or 0) + (not mine)
        acquired = str(spec.get("acquireTime") or "") if mine else ""
        terms = self._terms(acquired=acquired, transitions=transitions)
        return {**lease, "spec": {**spec, **terms}}

    def _terms(self, *, acquired: str, transitions: int) -> Manifest:
        now = rfc3339_micro(self._cluster.now())
        return {
            "holderIdentity": self.identity,
            "leaseDurationSeconds": max(int(self._lease_s), 1),
            "acquireTime": acquired or now,
            "renewTime": now,
            "leaseTransitions": transitions,
        }


def _spec(lease: Manifest | None) -> dict[str, Any]:
    return (lease or {}).get("spec") or {}


def _record(lease: Manifest) -> tuple[object, ...]:
    spec = _spec(lease)
    return tuple(spec.get(name) for name in ("holderIdentity", "renewTime", "leaseTransitions"))
