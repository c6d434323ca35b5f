"""`python -m tools.changelog VERSION`: move the fragments of `changelog.d/` into `CHANGELOG.md`.

The sentences become a section of the version, and the fragments are deleted.  What is new is
grouped by subject, all else by kind.  The first release only lists what is new: nobody had what was
changed or fixed before it.
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
SUBJECTS: Final[Mapping[str, str]] = {
    "Dashboard": r"dashboard|pumice ui",
    "Faster": r"times (as )?fast|faster|half the time|halve|costs? less|less time|simulations are",
    "Simulation and research": r"simulat|pumice (sim|trace|sweep|tune)|library|slowdown|learning",
    "The past: records, replays, canaries": r"pumice (record|replay|canary|history)",
    "Policy tests and configurations": r"policy test|scenario|config check|pumice (test|lint|diff)",
    "Why a job waits, and what if": r"explain|whatif|remed|^cause|forecast|doctor",
    "Plugins of your own": r"\bhook|plugin (author|of your|that)|plugins can|pumice\.plugin",
    "On your own machine": r"pumice (up|demo|job|queue|pod)|python -m pumice",
    "On a cluster": r"serve|chart|certificate|API server|make faults|threat|usage|real cluster",
}
"""Subjects of what is new, by the first words of a text: the first that fits, else the last one."""
_FIRST_WORDS: Final = 110
_DECIDING: Final = "Queues, gangs and placing"
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


def section(
    version: str, day: date, texts: Sequence[tuple[str, str]], *, first: bool = False
) -> str:
    """Write the section of a version; each text has its kind."""
    groups: dict[str, list[str]] = {}
    for kind, text in texts:
        if kind == "feature":
            groups.setdefault(_subject(text), []).append(_entry(text))
        elif not first:
            groups.setdefault(KINDS[kind], []).append(_entry(text))
    order = [_DECIDING, *reversed([*SUBJECTS]), *KINDS.values()]
    parts = [
        f"### {heading}\n\n" + "\n".join(groups[heading]) for heading in order if heading in groups
    ]
    return "\n\n".join((f"## {version} ({day.isoformat()})", *parts)) + "\n"


def _subject(text: str) -> str:
    begin = text[:_FIRST_WORDS]
    fits = (name for name, words in SUBJECTS.items() if re.search(words, begin, re.IGNORECASE))
    return next(fits, _DECIDING)


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
    first = "\n## " not in old.partition(_UNRELEASED)[2]
    new = f"{_UNRELEASED}\n{section(version, day, texts, first=first)}"
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
