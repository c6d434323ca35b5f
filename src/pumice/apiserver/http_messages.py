"""Requests and answers without a wire: what the server reads and writes, and the parts agree on."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from pumice.api.kinds import Manifest
from pumice.apiserver.failures import RequestError
from pumice.apiserver.protobuf import read_object
from pumice.apiserver.watches import Watch

JSON = "application/json"


@dataclass(frozen=True, slots=True)
class Request:
    """One request of a client; ``path`` is decoded only after it is split."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    accept: str = JSON
    content_type: str = JSON
    body: bytes = b""

    def says(self, name: str) -> bool:
        """Return whether a query parameter is true."""
        return self.query.get(name, "") in ("true", "1")

    def content(self) -> Any:
        """Read the body, None if there is none.

        Raises:
            RequestError: it cannot be read.
        """
        if not self.body.strip():
            return None
        if "protobuf" in self.content_type:
            return read_object(self.body)
        try:
            if "yaml" not in self.content_type:
                return json.loads(self.body)
            return json.loads(json.dumps(yaml.safe_load(self.body), default=str))
        except (ValueError, yaml.YAMLError) as error:
            raise RequestError(400, f"the body cannot be read: {error}") from None

    def manifest(self) -> Manifest:
        """Read the body as an object.

        Raises:
            RequestError: it is none.
        """
        content = self.content()
        if not isinstance(content, dict):
            raise RequestError(400, f"wanted an object, found {type(content).__name__}")
        return content


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client gets: data, a text, or a watch whose lines are sent as things happen."""

    code: int
    content: Any = None
    content_type: str = JSON
    watch: Watch | None = None
