"""`python -m tools.changelog VERSION`: move the fragments of `changelog.d/` into `CHANGELOG.md`.

The sentences become a section of the version, grouped by kind, and the fragments are deleted.
"""

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file
from tools.packages import ROOT

KINDS: Final[Mapping[str, str]] = {
    "feature": "New",
    "change": "Changed",
    "removal": "Removed",
    "fix": "Fixed",
    "docs": "Documentation",
}
"""Kinds of fragments and their headings, in the order of a section."""
_NAME: Final = re.compile(rf"[a-z0-9]+(?:-[a-z0-9]+)*\.({'|'.join(KINDS)})\.md")
_VERSION: Final = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_UNRELEASED: Final = "## Unreleased\n\nSee `changelog.d/`.\n"


class ChangelogError(ValueError):
    """A fragment or a changelog that cannot be used."""


def fragments(folder: Path) -> dict[Path, str]:
    """Return the fragments of a folder, each with its kind.

    Raises:
        ChangelogError: The name of a file is not `NAME.KIND.md`.
    """
    found = {}
    for file in sorted(folder.iterdir()):
        if file.name == "README.md":
            continue
        name = _NAME.fullmatch(file.name)
        if name is None:
            wanted = f"a name such as short-name.KIND.md with KIND one of {', '.join(KINDS)}"
            raise ChangelogError(f"{file}: expected {wanted}, got '{file.name}'")
        found[file] = name[1]
    return found


def section(version: str, day: date, texts: Sequence[tuple[str, str]]) -> str:
    """Write the section of a version; each text has its kind."""
    parts = [f"## {version} ({day.isoformat()})"]
    for kind, heading in KINDS.items():
        entries = [_entry(text) for its_kind, text in texts if its_kind == kind]
        if entries:
            parts.append(f"### {heading}\n\n" + "\n".join(entries))
    return "\n\n".join(parts) + "\n"


def _entry(text: str) -> str:
    """Return a fragment as one entry of a list; links lead from the root."""
    text = re.sub(r"\]\(\.\./", "](", text.strip())
    return "- " + text.replace("\n", "\n  ")


def move(root: Path, version: str, day: date) -> int:
    """Move all fragments below a root into the changelog; return how many there were.

    Raises:
        ChangelogError: The version, a fragment or the changelog cannot be used; nothing is changed.
    """
    changelog = root / "CHANGELOG.md"
    old = changelog.read_text(encoding="utf-8")
    if not _VERSION.fullmatch(version):
        raise ChangelogError(f"expected a version such as 1.2.0 or 1.2.0rc1, got '{version}'")
    if f"\n## {version} (" in old:
        raise ChangelogError(f"{changelog}: expected a new version, got a section of {version}")
    if _UNRELEASED not in old:
        raise ChangelogError(f"{changelog}: expected the section 'Unreleased' as it is left")
    found = fragments(root / "changelog.d")
    if not found:
        raise ChangelogError(f"{root / 'changelog.d'}: expected at least one fragment, got none")
    texts = [(kind, file.read_text(encoding="utf-8")) for file, kind in found.items()]
    new = f"{_UNRELEASED}\n{section(version, day, texts)}"
    write_file(changelog, old.replace(_UNRELEASED, new))
    for file in found:
        file.unlink()
    return len(found)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Move the fragments; return 1 if that cannot be done."""
    parser = argparse.ArgumentParser(prog="changelog", description=__doc__)
    parser.add_argument("version")
    version = parser.parse_args(arguments).version
    try:
        count = move(root, version, datetime.now(UTC).date())
    except ChangelogError as error:
        print(error, file=sys.stderr)  # noqa: T201
        return 1
    print(f"CHANGELOG.md: {count} fragments are now {version}")  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
