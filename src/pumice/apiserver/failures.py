"""Failures as Status objects in Kubernetes' words."""

from http import HTTPStatus
from typing import Any

from pumice.api.kinds import Kind, Kinds, Manifest
from pumice.errors import (
    AlreadyExistsError,
    ClusterError,
    ConflictError,
    DeniedError,
    GoneError,
    NamespaceTerminatingError,
    NotFoundError,
    PumiceError,
    RejectedError,
)
from pumice.webhooks.go_types import DecodeError, decode
from pumice.webhooks.review import cut

_REASONS = {
    400: "BadRequest",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "Timeout",
    413: "RequestEntityTooLarge",
    415: "UnsupportedMediaType",
    422: "Invalid",
    429: "TooManyRequests",
    500: "InternalError",
    501: "NotImplemented",
}


class RequestError(PumiceError):
    """A request that cannot be understood or is not served; ``code`` is that of the answer."""

    def __init__(self, code: int, problem: str) -> None:
        super().__init__()
        self.code = code
        self.problem = problem

    def __str__(self) -> str:
        return self.problem


def typed(content: Any, notation: str) -> Manifest:
    """Return the content of a request as the type declared by ``notation``.

    Raises:
        RequestError: it is of another type.
    """
    try:
        return decode({} if content is None else content, notation)
    except DecodeError as error:
        raise RequestError(400, f"the body cannot be read: {error}") from None


def status(code: int, reason: str, message: str, details: Manifest | None = None) -> Manifest:
    """Make a Status object."""
    made: Manifest = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success" if code < HTTPStatus.BAD_REQUEST else "Failure",
        "message": cut(message),
        "reason": reason,
        "code": code,
    }
    if details:
        made["details"] = details
    return {key: value for key, value in made.items() if value != ""}


def failure(error: PumiceError, kinds: Kinds) -> Manifest:
    """Make the Status object of an error."""
    if isinstance(error, RequestError):
        return status(error.code, _REASONS.get(error.code, "Unknown"), str(error))
    if not isinstance(error, ClusterError):
        return status(400, "BadRequest", str(error))
    kind = kinds.get(error.kind)
    details = _details(kind, error.name)
    if isinstance(error, RejectedError) and error.reason == "Invalid":
        details["causes"] = _causes(error)
        details["kind"] = kind.kind if kind is not None else error.kind
    if isinstance(error, NamespaceTerminatingError):
        message = f"namespace {error.namespace} is being terminated"
        cause = {
            "reason": "NamespaceTerminating",
            "message": message,
            "field": "metadata.namespace",
        }
        details["causes"] = [cause]
    return status(error.code, _reason(error), _message(error, kind), details)


def _causes(error: RejectedError) -> list[Manifest]:
    """List the findings one by one: kubectl shows nothing else of an invalid object."""
    known = error.causes
    if not known:
        field, colon, text = error.problem.partition(": ")
        is_path = bool(colon) and " " not in field
        known = (("FieldValueInvalid", *((field, text) if is_path else ("<nil>", error.problem))),)
    return [
        {"reason": reason, "message": cut(text), "field": cut(field)}
        for reason, field, text in known
    ]


def _reason(error: ClusterError) -> str:
    """Name the reason of a refusal; that of a webhook has none."""
    if isinstance(error, DeniedError) and not error.problem.startswith("admission webhook"):
        return _REASONS[error.code]
    return error.reason


def success(kind: Kind, name: str, uid: str = "") -> Manifest:
    """Make the Status object of a deletion that is done."""
    details = {**_details(kind, name), **({"uid": uid} if uid else {})}
    return {**status(200, "", "", details)}


def _details(kind: Kind | None, name: str) -> Manifest:
    named = {"name": cut(name)} if name else {}
    if kind is None:
        return named
    return {**named, **({"group": kind.group} if kind.group else {}), "kind": kind.plural}


def _message(error: ClusterError, kind: Kind | None) -> str:
    if isinstance(error, GoneError):
        return f"too old resource version: {error.problem}"
    if kind is None or error.verbatim:
        return error.problem if error.verbatim or not error.kind else str(error)
    what = f'{kind.resource} "{error.name}"'
    if isinstance(error, NotFoundError):
        return f"{what} not found" if error.name and error.problem == "not found" else str(error)
    if isinstance(error, AlreadyExistsError):
        return f"{what} already exists"
    if isinstance(error, ConflictError):
        return f"Operation cannot be fulfilled on {what}: {error.problem}"
    return f'{kind.name} "{error.name}" is invalid: {error.problem}'
