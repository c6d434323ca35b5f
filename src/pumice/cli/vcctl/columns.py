"""Tables in the original's layout: left-aligned, padded, nothing cut; a pod as one row."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from pumice.api.kinds import ENDED_PHASES, Manifest, kind_of
from pumice.api.shown_text import has_marks, shown, shown_json
from pumice.api.times import DAY, epoch, human_duration, moment_of
from pumice.cli.vcctl.verbs import Call

NOTHING = "No resources found\n"
OUTPUTS = ("json", "yaml", "wide", "name")
WRITTEN = ("json", "yaml", "name")
"""How a verb that writes prints what it wrote, instead of a sentence or nothing."""
_ROOM = 2  # spaces between columns that the original would let run into each other
_TEXT = "tag:yaml.org,2002:str"
_BOOLS = ("y", "Y", "n", "N")  # to Go, not to PyYAML


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column; without ``width`` as wide as its longest text and a gap."""

    title: str
    value: Callable[[Manifest], Any]
    width: int = 0
    wide: bool = False
    """Whether it is shown by `-o wide` only."""


def show(
    call: Call,
    items: Sequence[Manifest],
    columns: Sequence[Column],
    *,
    gap: int,
    title_gap: int | None = None,
    single: bool = False,
) -> None:
    """Print objects as the caller wants them: a table, or one of the outputs of ours."""
    if call.output in WRITTEN:
        print_objects(call, items, single=single)
    elif not items:
        call.echo(NOTHING)
    else:
        wide = call.output == "wide"
        chosen = [column for column in columns if wide or not column.wide]
        least = _ROOM if wide else None
        lines = table(chosen, items, gap, gap if title_gap is None else title_gap, least=least)
        call.echo("".join(lines if call.headers else lines[1:]))


def table(
    columns: Sequence[Column],
    items: Sequence[Manifest],
    gap: int,
    title_gap: int,
    *,
    least: int | None = None,
) -> list[str]:
    """Lay out a title line and one line for each object.

    A column of fixed width runs into the next when a text is too long, unless at least ``least``
    spaces separate any two.
    """
    rows = [[column.title for column in columns]]
    rows += [[shown(str(column.value(item))) for column in columns] for item in items]
    widths = []
    for at, column in enumerate(columns):
        lengths = [len(row[at]) for row in rows]
        fitting = max(lengths[0] + title_gap, *(length + gap for length in lengths[1:]))
        narrowest = 0 if least is None else max(lengths) + least
        widths.append(max(column.width or fitting, narrowest))
    return [
        "".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + "\n"
        for row in rows
    ]


def print_objects(call: Call, items: Sequence[Manifest], *, single: bool) -> None:
    """Print whole objects, or names; one requested by name is printed alone."""
    if call.output == "name":
        for item in items:
            call.line(f"{kind_of(item).lower()}/{item['metadata']['name']}")
        return
    clean = [{**item, "metadata": without_managed_fields(item["metadata"])} for item in items]
    content = clean[0] if single else {"apiVersion": "v1", "kind": "List", "items": clean}
    call.echo(as_json(content) if call.output == "json" else as_yaml(content))


def print_written(call: Call, item: Manifest, sentence: str = "") -> None:
    """Print an object that was written as the caller wants it, else a sentence about it."""
    if call.output:
        print_objects(call, [item], single=True)
    elif sentence:
        call.line(sentence)


def reference(version: str, kind: str, name: str, namespace: str = "") -> Manifest:
    """Return the manifest of a deleted object: what named it and nothing else."""
    metadata = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": metadata}


def without_managed_fields(metadata: Manifest) -> Manifest:
    """Return metadata without the server's record of field managers."""
    return {key: value for key, value in metadata.items() if key != "managedFields"}


def as_json(content: Any) -> str:
    """Write JSON as Go indents and escapes it."""
    return shown_json(escape(json.dumps(content, indent=2, ensure_ascii=False))) + "\n"


def escape(text: str) -> str:
    """Escape in JSON what Go escapes for the sake of HTML."""
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def as_yaml(content: Any) -> str:
    """Write YAML as Go's writer: sorted keys, lists not indented, doubtful texts in quotes."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def ignore_aliases(self, _data: Any) -> bool:
            return True

    def text(dumper: Any, value: str) -> yaml.ScalarNode:
        style = None
        if has_marks(value):  # an escape of the terminal is one of YAML inside quotes
            style = '"'
        elif "\n" in value:
            style = "|"
        elif value in _BOOLS or dumper.resolve(yaml.ScalarNode, value, (True, False)) != _TEXT:
            style = '"'
        return yaml.ScalarNode(_TEXT, value, style=style)

    Dumper.add_representer(str, text)
    written = yaml.dump(
        content, Dumper=Dumper, default_flow_style=False, allow_unicode=True, width=1 << 20
    )
    return str(written)


def age(moment: Any, now: float, *, whole_years: bool = True) -> str:
    """Write the time since a moment of a manifest; ``whole_years`` writes `2y`, not `2y0d`."""
    return duration(now - epoch(moment), whole_years=whole_years) if moment else "<unknown>"


def duration(span: float, *, whole_years: bool = True) -> str:
    """Write a time span with at most two units."""
    seconds = int(span)
    if seconds < 0:
        return "<invalid>" if seconds < -1 else "0s"
    years, days = divmod(seconds // DAY, 365)
    if years < 2:
        return human_duration(seconds)
    return f"{years}y" if years >= 8 or (whole_years and not days) else f"{years}y{days}d"


def go_time(moment: Any) -> str:
    """Print a timestamp of a manifest as Go does, in UTC."""
    if not moment:
        return "0001-01-01 00:00:00 +0000 UTC"
    when = moment_of(epoch(moment))
    return f"{when:%Y-%m-%d %H:%M:%S} +0000 UTC"


Status = Mapping[str, Any]


@dataclass(frozen=True)
class PodRow:
    """The cells of a pod."""

    name: str
    ready: str
    status: str
    restarts: str
    age: str
    node: str

    COLUMNS: ClassVar = (
        ("Name", "name"),
        ("Ready", "ready"),
        ("Status", "status"),
        ("Restart", "restarts"),
        ("Age", "age"),
    )


def pod_row(pod: Manifest, now: float) -> PodRow:
    """Summarise a pod."""
    metadata, spec, status = pod["metadata"], pod.get("spec") or {}, pod.get("status") or {}
    statuses = status.get("containerStatuses") or ()
    inits = status.get("initContainerStatuses") or ()
    sidecars = {
        container["name"]
        for container in spec.get("initContainers") or ()
        if container.get("restartPolicy") == "Always"
    }
    word, ready = _initialising(inits, sidecars, len(spec.get("initContainers") or ()))
    counted = [*inits]
    if not word or _condition(status, "Initialized"):
        counted = [*(one for one in inits if one["name"] in sidecars), *statuses]
        ready += sum(_is_running(one) for one in statuses)
        word = _main_word(status, statuses, word or _phase(status))
    total = len(spec.get("containers") or ()) + len(sidecars)
    return PodRow(
        metadata["name"],
        f"{ready}/{total}",
        _ending(pod, status) or word,
        _restarts(counted, now),
        age(metadata.get("creationTimestamp"), now),
        spec.get("nodeName") or "<none>",
    )


def _phase(status: Status) -> str:
    """Return the word of a pod before its containers are checked."""
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            return "SchedulingGated"
    return status.get("reason") or status.get("phase") or ""


def _initialising(inits: Iterable[Status], sidecars: set[str], total: int) -> tuple[str, int]:
    """Return the word of the first init container that has not finished, and the ready sidecars."""
    ready = 0
    for at, one in enumerate(inits):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if ended and not ended.get("exitCode"):
            continue
        if one["name"] in sidecars and one.get("started"):
            ready += bool(one.get("ready"))
        elif ended:
            return f"Init:{_end_word(ended)}", ready
        elif waiting.get("reason") not in (None, "", "PodInitializing"):
            return f"Init:{waiting['reason']}", ready
        else:
            return f"Init:{at}/{total}", ready
    return "", ready


def _main_word(status: Status, statuses: Iterable[Status], word: str) -> str:
    """Return the word by the containers, the first one last."""
    running = False
    for one in reversed(list(statuses)):
        state = one.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting") or {}
        if waiting.get("reason"):
            word = waiting["reason"]
        elif ended:
            word = _end_word(ended)
        running = running or _is_running(one)
    if word == "Completed" and running:
        return "Running" if _condition(status, "Ready") else "NotReady"
    return word


def _is_running(one: Status) -> bool:
    state = one.get("state") or {}
    waits = (state.get("waiting") or {}).get("reason")
    running = state.get("running") is not None and not state.get("terminated") and not waits
    return running and bool(one.get("ready"))


def _end_word(ended: Status) -> str:
    if ended.get("reason"):
        return str(ended["reason"])
    if ended.get("signal"):
        return f"Signal:{ended['signal']}"
    return f"ExitCode:{ended.get('exitCode', 0)}"


def _ending(pod: Manifest, status: Status) -> str:
    """Return the word of a pod that is being deleted."""
    if not pod["metadata"].get("deletionTimestamp"):
        return ""
    if status.get("reason") == "NodeLost":
        return "Unknown"
    return "" if status.get("phase") in ENDED_PHASES else "Terminating"


def _restarts(counted: Iterable[Status], now: float) -> str:
    total, last = 0, ""
    for one in counted:
        total += one.get("restartCount") or 0
        ended = (one.get("lastState") or {}).get("terminated") or {}
        moment = ended.get("finishedAt") or ""
        if moment and (not last or epoch(moment) > epoch(last)):
            last = moment
    return f"{total} ({age(last, now)} ago)" if total and last else str(total)


def _condition(status: Status, name: str) -> bool:
    return any(
        condition["type"] == name and condition.get("status") == "True"
        for condition in status.get("conditions") or ()
    )
