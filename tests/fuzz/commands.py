"""Every command that reads a file, run on files of objects with a few hostile values each."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
from click.testing import CliRunner

from pumice.api.cloning import clone
from pumice.cli.main import main
from tests.fuzz import seeds
from tests.fuzz.mutation import Mutator, places

Rng = np.random.Generator
VERBS: Final[dict[str, tuple[str, ...]]] = {
    "run": ("run", "FILE"),
    "run json": ("run", "FILE", "-o", "json"),
    "test": ("test", "FILE"),
    "lint": ("lint", "FILE"),
    "explain": ("explain", "-f", "FILE"),
    "explain job": ("explain", "-f", "FILE", "default/job", "-o", "yaml"),
    "explain group": ("explain", "-f", "FILE", "default/podgroup"),
    "queue order": ("queue", "order", "-f", "FILE"),
    "whatif": ("whatif", "-f", "FILE", "--add-nodes", "1"),
    "whatif job": ("whatif", "-f", "FILE", "--job", "FILE"),
    "snapshot": ("snapshot", "show", "FILE"),
    "sim": ("sim", "--trace", "FILE", "--dir", "FOLDER", "--limit", "20"),
    "config check": ("config", "check", "FILE"),
}
HOSTILE: Final[tuple[Any, ...]] = (
    "-30", "30-", "3-1", "0-999999999", "1,,2", "0-3,-5", "-9223372036854775809", "1e400", "NaN",
    "-1Gi", "1e18Ei", -(10**18), 10**18, 10**400, 1e308, -1e308, "0001-01-01T00:00:00Z",
    "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59.999999Z",
    "0000-01-01T00:00:00Z", "2026-13-45T99:99:99Z", "10000-01-01T00:00:00Z", -62135596801,
    "\x1b[31mred\x1b[0m", "a\u202eb", "a\nFAKE: b", "a\r\nb", "\x07\x08\x7f\x9b31m",
    "a\u200bb\ufeff", "\u2028x\u2029", "[red]x[/]", "=1+1", "👩‍👩‍👧", "\uff41", "٣", "²",
    "x" * 5000, "%s%n", "{0}", "9999999h", "-1s", "1y", "106751d",
    "2562047h47m16.854775807s", "١٢٣", "1_0",
    " 1", "1 ", "+1",
)  # fmt: skip
"""Values that look like right ones to a careless reader."""


def documents() -> list[Any]:
    """Return right files: the objects of every kind, and a small recorded case of each family."""
    found: list[Any] = [{"kind": "List", "apiVersion": "v1", "items": clone(seeds.MANIFESTS)}]
    found += [clone(one) for one in seeds.SCENARIOS]
    for family in sorted((seeds.ROOT / "tests/golden").iterdir()):
        files = sorted(family.glob("*.json"), key=lambda file: file.stat().st_size)
        found += [json.loads(file.read_text()) for file in files[: 2 if files else 0]]
    return found


def make(values: list[Any]) -> Callable[[Rng], bytes]:
    """Return what makes inputs: one hostile value somewhere, sometimes other changes too."""
    mutator = Mutator(values)

    def made(rng: Rng) -> bytes:
        value = mutator.value(rng) if not rng.integers(3) else _pick(rng, values)
        value = json.loads(json.dumps(value))
        for _ in range(int(rng.integers(1, 4))):
            known = [path for path in places(value) if not _is_text_of_kind(path)]
            if known:
                path = _pick(rng, known)
                holder = value
                for step in path[:-1]:
                    holder = holder[step]
                holder[path[-1]] = clone(_pick(rng, HOSTILE))
        return json.dumps(value).encode("utf-8", "surrogatepass")

    return made


def _is_text_of_kind(path: tuple[Any, ...]) -> bool:
    return len(path) <= 1 or path[-1] in ("apiVersion", "kind")


def _pick(rng: Rng, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def run_all(file: Path, folder: Path) -> None:
    """Run every command on a file.

    Raises:
        Exception: what a command let through.
    """
    for verb in VERBS:
        run_one(verb, file, folder)


def run_one(verb: str, file: Path, folder: Path) -> Any:
    """Run one command on a file; what it lets through is raised, with the verb in a note."""
    names = {"FILE": str(file), "FOLDER": str(folder / "out")}
    result = CliRunner().invoke(main, [names.get(word, word) for word in VERBS[verb]])
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        error.add_note(verb)
        raise error
    assert result.exit_code in (0, 1, 2), (verb, result.exit_code)
    assert "nternal error" not in result.output, (verb, result.output)
    return result
