"""Objects in the form a client asks for: as they are, as a table, or their metadata alone."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from pumice.api.kinds import Kind, Manifest
from pumice.apiserver.columns import COLUMNS, GENERIC

_META = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True)
class Form:
    """What a client wants: ``kind`` is Table, PartialObjectMetadata or nothing."""

    kind: str = ""
    include: str = "Metadata"
    """Of each object of a table: Object, Metadata or None."""


def wanted_form(accept: str, include: str = "") -> Form:
    """Read an Accept header; the first form that is known counts."""
    for choice in accept.split(","):
        asked = re.search(r";\s*as=(\w+)", choice)
        if asked is None:
            return Form()
        if asked[1] == "Table":
            return Form("Table", include or "Metadata")
        if asked[1] in ("PartialObjectMetadata", "PartialObjectMetadataList"):
            return Form("PartialObjectMetadata")
    return Form()


def one(manifest: Manifest, kind: Kind, form: Form, now: float) -> Manifest:
    """Return one object in a form."""
    if form.kind == "Table":
        version = manifest["metadata"].get("resourceVersion", "")
        return _table([manifest], kind, form, now, {"resourceVersion": version})
    return _metadata_only(manifest) if form.kind else manifest


def many(
    manifests: Sequence[Manifest], kind: Kind, form: Form, now: float, metadata: Manifest
) -> Manifest:
    """Return a list of objects in a form."""
    if form.kind == "Table":
        return _table(manifests, kind, form, now, metadata)
    if form.kind:
        items = [_metadata_only(manifest) for manifest in manifests]
        head = {"kind": "PartialObjectMetadataList", "apiVersion": _META}
        return {**head, "metadata": metadata, "items": items}
    head = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version}
    return {**head, "metadata": metadata, "items": list(manifests)}


def _metadata_only(manifest: Manifest) -> Manifest:
    head = {"kind": "PartialObjectMetadata", "apiVersion": _META}
    return {**head, "metadata": manifest["metadata"]}


def _table(
    manifests: Sequence[Manifest], kind: Kind, form: Form, now: float, metadata: Manifest
) -> Manifest:
    columns = COLUMNS.get(kind.name, GENERIC)
    definitions = [
        {
            "name": column.name,
            "type": column.type,
            "format": "name" if column.name == "Name" else "",
            "description": "",
            "priority": column.priority,
        }
        for column in columns
    ]
    rows: list[Manifest] = []
    for manifest in manifests:
        row: Manifest = {"cells": [column.cell(manifest, now) for column in columns]}
        if form.include != "None":
            row["object"] = manifest if form.include == "Object" else _metadata_only(manifest)
        rows.append(row)
    head = {"kind": "Table", "apiVersion": _META, "metadata": metadata}
    return {**head, "columnDefinitions": definitions, "rows": rows}
