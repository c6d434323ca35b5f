"""Writes the generated files of this folder: ``python -m deploy.build``.

The definitions are Python (``crds.py``, ``rbac.py``, ``workloads.py``); what users apply is YAML.
A test asserts that the files are up to date.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from deploy.alerts import alert_rules
from deploy.crds import RESOURCES
from deploy.grafana import dashboard
from deploy.rbac import (
    ADMISSION,
    CONTROLLERS,
    FOR_PODGROUPS,
    FOR_UI,
    FOR_UI_ACTIONS,
    FOR_UI_LOGIN,
    SCHEDULER,
    listed,
    rules,
)
from deploy.values_schema import values_schema
from deploy.webhooks import WEBHOOKS
from deploy.workloads import USERS, certificate_component, everything, shadow

HERE: Final = Path(__file__).resolve().parent
CHART: Final = HERE / "helm" / "pumice"
_NOTE: Final = (
    "# Written by `python -m deploy.build`; change the Python files of this folder instead.\n"
)


_PERMISSIONS: Final = (
    "# Permissions\n\n"
    "What the roles of the manifest and the chart grant; how they came about and what people need "
    "is in [install](install.md#permissions). Written by `python -m deploy.build`.\n"
)


_WIDEST: Final = 1 << 20
_JSON_TYPES: Final = ("array", "boolean", "integer", "object", "string")


class _Dumper(yaml.SafeDumper):
    """Writes lists inside mappings indented, texts of several lines as blocks, and no aliases.

    Each field of a pod takes one line: written out, they are three thousand.
    """

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002, FBT001, FBT002
        """Indent lists too."""
        super().increase_indent(flow, indentless=False)

    def represent_mapping(self, tag: str, mapping: Any, flow_style: bool | None = None) -> Any:  # noqa: FBT001
        """Write a schema without descriptions on one line."""
        node = super().represent_mapping(tag, mapping, flow_style)
        is_schema = isinstance(mapping, dict) and mapping.get("type") in _JSON_TYPES
        if is_schema and "description" not in str(mapping):
            node.flow_style = True
        return node

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        """Write equal parts in full each time."""
        return True


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = "|" if "\n" in value else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(str, _text)


def to_yaml(documents: Iterable[Mapping[str, Any] | Sequence[Any]]) -> str:
    """Write documents one after another."""
    return "---\n".join(
        yaml.dump(one, Dumper=_Dumper, sort_keys=False, width=_WIDEST, allow_unicode=True)
        for one in documents
    )


def _roles() -> dict[str, Any]:
    """Return the rules of each component for the chart."""
    found: dict[str, Any] = {
        one.name: {
            "everywhere": rules(one.everywhere),
            "at_home": rules(one.at_home),
            "in_job_namespaces": rules(one.in_job_namespaces),
        }
        for one in (SCHEDULER, CONTROLLERS, ADMISSION)
    }
    found["for_podgroups"] = rules(FOR_PODGROUPS)
    found["for_ui"] = rules(FOR_UI)
    found["for_ui_login"] = rules(FOR_UI_LOGIN)
    found["for_ui_actions"] = rules(FOR_UI_ACTIONS)
    found["users"] = {who: rules(may) for who, may in USERS.items()}
    return found


def _webhooks() -> list[dict[str, Any]]:
    """Return the webhooks for the chart, which chooses among them."""
    return [
        {
            "path": one.path,
            "name": one.name,
            "configuration": one.configuration,
            "mutates": one.mutates,
            "namespaced": one.namespaced,
            "ours": one.ours,
            "rules": one.rules(),
        }
        for one in WEBHOOKS
    ]


def _chart_files() -> dict[str, Mapping[str, Any] | Sequence[Any]]:
    """Return what templates of the chart read, by the name of its file."""
    return {
        "alerts": alert_rules(),
        "rbac": _roles(),
        "values": _values(),
        "webhooks": _webhooks(),
    }


def _defaults() -> dict[str, dict[str, Any]]:
    """Return the values of the chart."""
    values: dict[str, dict[str, Any]] = yaml.safe_load(
        (CHART / "values.yaml").read_text(encoding="utf-8")
    )
    return values


def _values() -> dict[str, list[str]]:
    """Return the values the chart knows, so that its notes can name those it does not."""
    return {section: sorted(keys) for section, keys in _defaults().items()}


def _page() -> str:
    """Return the page that lists the permissions."""
    listing = listed([SCHEDULER, CONTROLLERS, ADMISSION, certificate_component()])
    return f"{_PERMISSIONS}{listing.rstrip()}\n"


def outputs() -> dict[Path, str]:
    """Return every generated file with its content."""
    files: dict[Path, str] = {}
    for resource in RESOURCES:
        text = _NOTE + to_yaml([resource.manifest()])
        files[HERE / "crds" / resource.file_name] = text
        files[CHART / "files" / "crds" / resource.file_name] = text
    for name, content in _chart_files().items():
        files[CHART / "files" / f"{name}.yaml"] = _NOTE + to_yaml([content])
    files[CHART / "files" / "grafana-dashboard.json"] = f"{json.dumps(dashboard(), indent=2)}\n"
    schema = json.dumps(values_schema(_defaults()), indent=2)
    files[CHART / "values.schema.json"] = f"{schema}\n"
    files[HERE.parent / "docs" / "permissions.md"] = _page()
    documents = [*(resource.manifest() for resource in RESOURCES), *everything()]
    files[HERE / "pumice.yaml"] = _NOTE + to_yaml(documents)
    files[HERE / "shadow.yaml"] = _NOTE + to_yaml(shadow())
    return files


def main() -> None:
    """Write the files."""
    for path, text in outputs().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(HERE.parent)}\n")


if __name__ == "__main__":
    main()
