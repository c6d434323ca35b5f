"""Ask the OSV database whether a locked version has a known vulnerability; part of `make check`.

With ``--database`` the answer comes from a copy of the database, its export for PyPI as a zip file,
and no network is needed.  Exit codes: 0 nothing is known, or nothing was checked, which a line that
begins with "not checked" says; 1 there are findings or, with ``--strict``, nothing was checked or
the copy is older than thirty days.
"""

import argparse
import json
import re
import sys
import urllib.request
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tools.packages import ROOT
from tools.release import pins

URL: Final = "https://api.osv.dev/v1/querybatch"
ACCEPTED: Final[Mapping[str, str]] = {}
"""Identifiers that do not concern Pumice, each with the reason."""
FRESH: Final = timedelta(days=30)
"""How old a copy of the database may be for a release."""


def ask(packages: Sequence[tuple[str, str]], url: str = URL, timeout_s: float = 15.0) -> Any:
    """Return the answer of the database, one entry for each package."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version}
        for name, version in packages
    ]
    request = urllib.request.Request(  # noqa: S310
        url, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=timeout_s) as answer:  # noqa: S310
        return json.load(answer)["results"]


def look_up(packages: Sequence[tuple[str, str]], database: Path) -> tuple[Any, datetime]:
    """Return what a copy of the database answers, and the time of its newest entry."""
    known: dict[tuple[str, str], list[dict[str, str]]] = {each: [] for each in packages}
    newest = datetime.min.replace(tzinfo=UTC)
    with zipfile.ZipFile(database) as archive:
        for name in archive.namelist():
            entry = json.loads(archive.read(name))
            newest = max(newest, datetime.fromisoformat(entry["modified"]))
            if "withdrawn" in entry:
                continue
            for affected in entry.get("affected") or ():
                package = _normal(affected.get("package", {}).get("name", ""))
                for version in affected.get("versions") or ():
                    if (package, version) in known:
                        known[package, version].append({"id": entry["id"]})
    return [{"vulns": known[each]} for each in packages], newest


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def findings(
    packages: Sequence[tuple[str, str]], results: Sequence[Mapping[str, Any]]
) -> list[str]:
    """Return known and unaccepted vulnerabilities of each package."""
    return [
        f"{name} {version}: {vulnerability['id']}"
        for (name, version), result in zip(packages, results, strict=True)
        for vulnerability in result.get("vulns") or ()
        if vulnerability["id"] not in ACCEPTED
    ]


def main(arguments: Sequence[str] | None = None, url: str = URL) -> int:
    """Audit the lock files; return 1 if there are findings or, with ``--strict``, no answer."""
    parser = argparse.ArgumentParser(prog="audit", description=__doc__)
    parser.add_argument("--strict", action="store_true", help="fail if nothing can be checked")
    parser.add_argument("--database", type=Path, help="the export of OSV for PyPI, a zip file")
    chosen = parser.parse_args(arguments)
    locked = {
        (_normal(name), version)
        for lock in ("runtime", "dev")
        for name, version, _ in pins(ROOT / "requirements" / f"{lock}.txt")
    }
    packages, newest, source = sorted(locked), datetime.now(UTC), chosen.database or url
    try:
        if chosen.database:
            results, newest = look_up(packages, chosen.database)
        else:
            results = ask(packages, url)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        print(  # noqa: T201
            f"not checked: {len(packages)} locked packages were not audited, "
            f"{source} does not answer ({error}); name a copy with --database"
        )
        return int(chosen.strict)
    found = findings(packages, results)
    for line in found:
        print(line)  # noqa: T201
    print(  # noqa: T201
        f"{len(packages)} locked packages audited as of {newest:%Y-%m-%d}, "
        f"{len(found)} with known vulnerabilities"
    )
    return int(bool(found) or (chosen.strict and datetime.now(UTC) - newest > FRESH))


if __name__ == "__main__":
    sys.exit(main())
