"""Why a job waits, as data, and the JSON schema that `pumice explain --schema` prints."""

from typing import Any, Final

from pumice.api.codes import Cause, Spared

_TEXT: Final = {"type": "string"}
_COUNT: Final = {"type": "integer", "minimum": 0}
_OBJECT: Final[dict[str, Any]] = {
    "oneOf": [
        {"type": "null"},
        {
            "type": "object",
            "required": ["kind", "namespace", "name"],
            "properties": {"kind": _TEXT, "namespace": _TEXT, "name": _TEXT},
        },
    ]
}
_PLACE: Final = {"kind": _TEXT, "namespace": _TEXT, "name": _TEXT}


def _record(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": list(properties), "properties": properties}


def _list(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _op(what: str, **properties: Any) -> dict[str, Any]:
    return _record(op={"const": what}, **properties)


CHANGE: Final[dict[str, Any]] = {
    "oneOf": [
        _op("patch", **_PLACE, patch=_list({"type": "object", "required": ["op", "path"]})),
        _op("add", object={"type": "object", "required": ["apiVersion", "kind", "metadata"]}),
        _op("remove", **_PLACE),
        _op("conf", text=_TEXT),
        _op("wait", pods=_list(_TEXT)),
    ]
}
_POSITION: Final = _record(
    queue=_TEXT,
    place=_COUNT,
    of=_COUNT,
    queuePlace=_COUNT,
    queues=_COUNT,
    turn={"type": ["integer", "null"]},
    behind=_list(_record(job=_TEXT, key=_TEXT)),
)
_FORECAST: Final = _record(
    state={"enum": ["now", "after evictions", "later", "never", "unknown", "running"]},
    in_s={"type": ["number", "null"]},
    text=_TEXT,
)
_RESERVATION: Final = _record(start=_TEXT, in_s={"type": "number"}, nodes=_list(_TEXT), text=_TEXT)
_NUMBERS: Final = {"type": "object"}

EXPLANATION: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Why a job waits",
    **_record(
        job=_TEXT,
        name=_TEXT,
        state={"enum": ["waits", "starts", "evicted", "runs", "finished"]},
        text=_TEXT,
        queue=_TEXT,
        phase=_TEXT,
        minMember=_COUNT,
        pods={"type": "object", "additionalProperties": _COUNT},
        expected=_COUNT,
        refused=_COUNT,
        causes=_list(
            _record(
                code={"enum": [each.value for each in Cause]},
                text=_TEXT,
                object=_OBJECT,
                numbers=_NUMBERS,
            )
        ),
        notEvicted=_list(
            _record(
                code={"enum": [each.value for each in Spared]},
                pods=_COUNT,
                text=_TEXT,
                object=_OBJECT,
                numbers=_NUMBERS,
            )
        ),
        funnel=_list(_record(constraint=_TEXT, left=_COUNT, text=_TEXT)),
        position={"oneOf": [{"type": "null"}, _POSITION]},
        forecast={"oneOf": [{"type": "null"}, _FORECAST]},
        reservation={"oneOf": [{"type": "null"}, _RESERVATION]},
        remedies=_list(
            _record(
                text=_TEXT,
                changes=_list(CHANGE),
                result=_TEXT,
                evicts=_list(_TEXT),
                holdsBack=_list(_TEXT),
            )
        ),
        victims=_list(_record(pod=_TEXT, job=_TEXT, node=_TEXT, queue=_TEXT)),
        places={"type": "object", "additionalProperties": _TEXT},
        tried=_COUNT,
        cycle=_COUNT,
        notes=_list(_TEXT),
    ),
}
