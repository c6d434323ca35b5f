"""Records that a scenario names in `objectsFrom`: the cluster at the time that it states."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pumice.api.scenario_values import listed, problem, typed
from pumice.api.times import rfc3339, rfc3339_micro
from pumice.errors import InputError
from pumice.records.history import History
from pumice.records.segments import is_record
from pumice.records.stores import beside, is_url


def read_named_records(
    path: Path, document: Mapping[str, Any]
) -> tuple[list[dict[str, Any]], Mapping[str, Any]]:
    """Return the records that a scenario names as snapshots, and the scenario without their names.

    Its `now` is the moment of the record: an instant, the last "03:10", or "-2h" from the end.

    Raises:
        ScenarioError: a record cannot be read, or does not reach so far.
    """
    given = document.get("objectsFrom", [])
    names = [given] if isinstance(given, str) else listed(path, "objectsFrom", given)
    folders = [name for name in names if isinstance(name, str) and _is_record(path, name)]
    if not folders:
        return [], document
    when = document.get("now")
    if when is not None:
        typed(path, "now", when, str, "a moment of the record")
    found = [_snapshot(path, name, when) for name in folders]
    rest = [name for name in names if name not in folders]
    return found, {**document, "objectsFrom": rest, "now": found[0]["now"]}


def _is_record(path: Path, name: str) -> bool:
    if is_url(name):
        return True
    try:
        return is_record(beside(path.parent, name))
    except (OSError, ValueError):  # whoever reads it as a file names the fault
        return False


def _snapshot(path: Path, name: str, when: str | None) -> dict[str, Any]:
    where = "objectsFrom"
    try:
        history = History(beside(path.parent, name))
        where = "now" if when is not None else where
        moment = history.at(when)
    except InputError as error:
        raise problem(path, where, error.found, error.wanted, error.hint) from None
    usage = {
        node: {key: rfc3339(value) if key == "metricsTime" else value for key, value in one.items()}
        for node, one in moment.usage.items()
    }
    conf = {} if moment.conf is None else {"conf": moment.conf.text}
    return {
        "objects": [*moment.objects.values()],
        "now": rfc3339_micro(moment.now),
        "nodeUsage": usage,
        "hidden": moment.hidden,
        **conf,
    }
