"""The past of a cluster, from a record."""

from pathlib import Path
from typing import overload

from pumice.api.times import rfc3339
from pumice.diagnosis import job_history
from pumice.diagnosis.sources import load_world
from pumice.library.arguments import PATHS, check_configuration, check_kind
from pumice.library.clusters import Cluster
from pumice.library.tables import Table
from pumice.library.workloads import Configuration, read_configuration
from pumice.records.history import History as Record
from pumice.replay.compare import Comparison, play
from pumice.replay.exact import Fidelity, replay_exactly

_COLUMNS = ("job", "queue", "state", "cause", "since", "seconds", "why")


class History:
    """A record of ``pumice record``, ``pumice up --record`` or ``pumice serve scheduler``."""

    def __init__(self, folder: str | Path) -> None:
        """Open a record.

        Raises:
            InputError: There is none in the folder.
        """
        check_kind("folder", folder, PATHS, "the folder of a record")
        self._record = Record(Path(folder))

    @property
    def problems(self) -> list[str]:
        """What could not be read so far, with its place."""
        return list(self._record.problems)

    def at(self, time: str | None = None) -> Cluster:
        """Return the cluster at a time: "03:10", "-2h" or RFC 3339; by default at the end.

        Raises:
            InputError: No such time, or the record does not reach so far back.
        """
        when = None if time is None else self._record.time(time)
        return Cluster(load_world([self._record.folder], now=when))

    def jobs(self, since: str | None = None, until: str | None = None) -> Table:
        """List each state of each job with its cause and how long it held."""
        spans = job_history.spans_of(self._record, *self._window(since, until))
        rows = [
            (each.job, each.queue, each.state, each.cause, rfc3339(each.since),
             round(each.seconds, 3), each.why)
            for each in spans
        ]  # fmt: skip
        return Table(_COLUMNS, rows)

    @overload
    def replay(
        self, conf: None = None, *, since: str | None = None, until: str | None = None
    ) -> Fidelity: ...

    @overload
    def replay(
        self, conf: str | Path, *, since: str | None = None, until: str | None = None
    ) -> Comparison: ...

    def replay(
        self, conf: Configuration = None, *, since: str | None = None, until: str | None = None
    ) -> Fidelity | Comparison:
        """Decide every recorded cycle of a Pumice scheduler again, and compare.

        With another configuration, simulate the recorded jobs under the recorded one and under it.

        Args:
            conf: The other configuration: a file, or its text.
            since: From when on.
            until: Until when.
        """
        window = self._window(since, until)
        if conf is None:
            return replay_exactly(self._record, *window)
        check_configuration("conf", conf)
        return play(self._record, read_configuration(conf).conf, *window).compared()

    def _window(self, since: str | None, until: str | None) -> tuple[float | None, float | None]:
        times = [None if each is None else self._record.time(each) for each in (since, until)]
        return times[0], times[1]

    def __repr__(self) -> str:
        return f"<History of {self._record.folder} from {rfc3339(self._record.start)}>"
