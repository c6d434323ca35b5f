"""Ask the OSV database whether a locked version has a known vulnerability; part of `make check`.

Without a network it says so and the check continues: an unknown result is not a failure here, but
it is one for a release (``--strict``).
"""

import argparse
import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tools.release import ROOT, pins

URL: Final = "https://api.osv.dev/v1/querybatch"
ACCEPTED: Final[Mapping[str, str]] = {}
"""Identifiers that do not concern Pumice, each with the reason."""


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
    parser = argparse.ArgumentParser(prog="audit")
    parser.add_argument("--strict", action="store_true", help="fail without a network")
    strict = parser.parse_args(arguments).strict
    locked = {
        (name, version)
        for lock in ("runtime", "dev")
        for name, version, _ in pins(ROOT / "requirements" / f"{lock}.txt")
    }
    packages = sorted(locked)
    try:
        results = ask(packages, url)
    except (OSError, ValueError, KeyError, urllib.error.URLError) as error:
        print(f"dependencies were not audited: {url} does not answer ({error})")  # noqa: T201
        return int(strict)
    found = findings(packages, results)
    for line in found:
        print(line)  # noqa: T201
    print(f"{len(packages)} locked packages audited, {len(found)} with known vulnerabilities")  # noqa: T201
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
