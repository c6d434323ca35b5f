"""The lines of a watch: taken from a stream in any pieces, decoded, checked.

Used by reflectors and by one-time watches.
"""

from collections.abc import AsyncGenerator, Iterable
from typing import Any, Final
from urllib.parse import quote_plus

import msgspec

from pumice.api.annotations import INITIAL_EVENTS_END
from pumice.cluster.base import Event
from pumice.cluster.http.client import Stream
from pumice.cluster.kube.client import KubeClient
from pumice.cluster.kube.paths import ObjectKey, refusal
from pumice.errors import ClusterError, GoneError, UnavailableError

_LONGEST_LINE: Final = 64 << 20
_LONGEST_REASON: Final = 1 << 16
_GRACE_S: Final = 30.0  # for a server that ends watches a little late
_TYPES: Final = frozenset(("ADDED", "MODIFIED", "DELETED", "BOOKMARK"))


class _Step(msgspec.Struct):
    type: str
    object: dict[str, Any]


_decode: Final = msgspec.json.Decoder(_Step).decode


def ends_initial(event: Event) -> bool:
    """Return whether a step marks the end of the initial objects."""
    if event.type != "BOOKMARK":
        return False
    notes = event.object["metadata"].get("annotations")
    return isinstance(notes, dict) and notes.get(INITIAL_EVENTS_END) == "true"


async def watch_steps(
    client: KubeClient,
    kind: str,
    namespace: str,
    since: str,
    timeout_s: int,
    *,
    initial: bool = False,
) -> AsyncGenerator[list[Event], None]:
    """Yield the steps of one watch as they arrive, several at a time; ends when the server ends it.

    ``initial`` asks for the existing objects before changes to them (WatchList).

    The first batch is empty, and shows that the watch is open.  A last line that is cut off is
    dropped: a resumed watch repeats it.

    Raises:
        GoneError: the version is too old, in the answer or in the stream, or a line
            cannot be read; list again.
        NotFoundError: the server does not have this kind.
        RejectedError: the server does not begin a watch with the existing objects.
        UnavailableError: the connection is lost.
    """
    query = f"watch=true&allowWatchBookmarks=true&timeoutSeconds={timeout_s}"
    if since:
        query += f"&resourceVersion={quote_plus(since)}"
    if initial:
        query += "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
    target = f"{client.path_of(kind, namespace)}?{query}"
    key = (kind, namespace, "")
    async with client.transport.stream(target, timeout_s + _GRACE_S) as answer:
        if answer.status >= 300:
            if answer.status == 401:
                client.transport.refused()
            error = refusal(await _body_of(answer), key, answer.status)
            if isinstance(error, UnavailableError):
                error.retry_after_s = answer.retry_after_s
            raise error
        yield []  # it is open
        rest: list[bytes] = []
        size = 0
        while piece := await answer.read():
            rest.append(piece)
            size += len(piece)
            if b"\n" in piece:
                *lines, last = b"".join(rest).split(b"\n")
                rest, size = [last], len(last)
                events, broken = _read(lines, key)
                yield events
                if broken is not None:
                    raise broken
            elif size > _LONGEST_LINE:
                problem = f"a line of a watch of more than {_LONGEST_LINE} bytes"
                raise GoneError(*key, problem=problem)


def _read(lines: Iterable[bytes], key: ObjectKey) -> tuple[list[Event], ClusterError | None]:
    """Read lines up to the first that is an error; return that as well."""
    events: list[Event] = []
    for line in lines:
        if line:
            try:
                events.append(_event(line, key))
            except ClusterError as error:
                return events, error
    return events, None


def _event(line: bytes, key: ObjectKey) -> Event:
    try:
        step = _decode(line)
    except msgspec.MsgspecError as error:
        problem = f"an unreadable line in a watch: {error}"
        raise GoneError(*key, problem=problem) from error
    if step.type == "ERROR":
        raise refusal(step.object, key)
    metadata = step.object.get("metadata")
    if step.type not in _TYPES or not isinstance(metadata, dict):
        raise GoneError(*key, problem=f"a step of a watch of type '{step.type}'")
    metadata.pop("managedFields", None)  # a third of most objects, and not used here
    return Event(step.type, step.object)  # type: ignore[arg-type]  # checked above


async def _body_of(answer: Stream) -> Any:
    """Read the reason of a refusal, cut to a sensible length."""
    content = b""
    while len(content) < _LONGEST_REASON and (piece := await answer.read()):
        content += piece
    try:
        return msgspec.json.decode(content)
    except msgspec.MsgspecError:
        return {}
