"""The JSON schemas of files: every example fits, mistakes do not, and the pages have the same."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from click.testing import CliRunner

from pumice.api.manifests import load_values
from pumice.api.yaml_text import parse_yaml
from pumice.cli.main import main
from pumice.cli.schema import FILES as OFFERED
from pumice.scenarios.file_schemas import FILES, file_schema
from pumice.scenarios.scenario import is_scenario

ROOT = Path(__file__).parents[3]
FENCED = re.compile(r"^```yaml[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
SUFFIXES = (".yaml", ".yml", ".conf")


def examples() -> Iterator[tuple[Path, Any]]:
    """Yield the documents of the examples, of the pages and of some golden cases."""
    files = [path for path in sorted((ROOT / "examples").rglob("*")) if path.suffix in SUFFIXES]
    for path in (*files, *sorted((ROOT / "tests" / "golden").rglob("*.json"))[::10]):
        yield from ((path, document) for document in load_values(path))
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for text in FENCED.findall(page.read_text(encoding="utf-8")):
            yield from ((page, document) for document in load_values(text))


def faults(name: str, document: Any) -> list[str]:
    """Return what is wrong with a document, innermost part first."""
    found = jsonschema.Draft7Validator(file_schema(name)).iter_errors(document)
    return [f"{list(error.absolute_path)}: {error.message[:300]}" for error in found]


def test_every_example_fits() -> None:
    seen = dict.fromkeys(("conf", "scenario"), 0)
    wrong = []
    for path, document in examples():
        is_conf = isinstance(document, dict) and {"actions", "tiers"} <= document.keys()
        name = "conf" if is_conf else "scenario" if is_scenario(document) else ""
        if name:
            seen[name] += 1
            wrong += [f"{path.relative_to(ROOT)}: {each}" for each in faults(name, document)]
    assert (wrong, min(seen.values()) > 5) == ([], True)


@pytest.mark.parametrize("name", FILES)
def test_the_command_and_the_pages_have_it(name: str) -> None:
    printed = json.loads(CliRunner().invoke(main, ["schema", name]).stdout)
    jsonschema.Draft7Validator.check_schema(printed)
    assert printed == json.loads(json.dumps(file_schema(name)))
    assert OFFERED == FILES
    page = ROOT / "docs" / "schemas" / f"{name}.json"
    hint = f"pumice schema {name} > {page.relative_to(ROOT)}"
    assert json.loads(page.read_text(encoding="utf-8")) == printed, hint


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("conf", "{tiers: []}"),
        ("conf", "{actions: [allocate]}"),
        ("conf", "{actions: allocate, tier: []}"),
        ("conf", "{actions: allocate, tiers: [{plugins: [gang]}]}"),
        ("conf", "{actions: allocate, tiers: [{plugins: [{name: gang, enableJobOrders: true}]}]}"),
        ("conf", "{actions: allocate, tiers: [{plugins: [{name: gang, enableJobOrder: 'no'}]}]}"),
        (
            "conf",
            "{actions: a, tiers: [{plugins: [{name: binpack, arguments: {binpack.heavy: 1}}]}]}",
        ),
        (
            "conf",
            "{actions: a, tiers: [{plugins: [{name: binpack, arguments: {binpack.weight: x}}]}]}",
        ),
        ("scenario", "{object: []}"),
        ("scenario", "{objects: [{kind: Pod}]}"),
        ("scenario", "{nodes: {count: 2, cpus: 4}}"),
        ("scenario", "{queues: {a: {heavy: 1}}}"),
        ("scenario", "{workloads: [{queue: a, pod: 3}]}"),
        ("scenario", "{expect: {bind: {}}}"),
        ("scenario", "{expect: {causes: {a: QueueFuller}}}"),
        ("scenario", "{at: [{cycle: 2, end: [a]}]}"),
        ("scenario", "{conf: {actions: allocate, tiers: [{plugin: []}]}}"),
        ("changes", "[{op: patch, kind: Queue, patch: []}]"),
        ("changes", "[{op: erase, kind: Queue, name: a}]"),
    ],
)
def test_a_mistake_does_not_fit(name: str, text: str) -> None:
    assert faults(name, parse_yaml(text, "text"))


def test_a_list_of_changes_fits() -> None:
    patch = {"op": "patch", "kind": "Queue", "name": "a", "patch": [{"op": "add", "path": "/x"}]}
    assert faults("changes", [patch, {"op": "conf", "text": "actions: allocate"}]) == []
