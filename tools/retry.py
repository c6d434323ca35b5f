"""Run tests, retry failed ones once, and report flaky ones.

A real API server on a shared machine may stall for seconds; a test that passes only alone is worth
a look, so it is named at the end and in a file.

    python -m tools.retry PYTEST ARGUMENTS...
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pumice.api.output_files import write_file

REPORT: Final = Path("build/flaky.txt")


def run(arguments: Sequence[str], report: Path = REPORT) -> int:
    """Return the exit code: that of the second try if there is one."""
    cache = report.parent / "retry-cache"
    pytest = [sys.executable, "-m", "pytest", "-o", f"cache_dir={cache.resolve()}", *arguments]
    report.unlink(missing_ok=True)
    code = subprocess.run(pytest, check=False).returncode  # noqa: S603
    if code != 1:  # passed, or did not even start
        return code
    before = _failed(cache)
    again = [*pytest, "--last-failed", "--last-failed-no-failures", "none"]
    if "-n" in arguments:
        again += ["-n", "0"]  # nothing runs beside it
    code = subprocess.run(again, check=False).returncode  # noqa: S603
    flaky = sorted(before - _failed(cache)) if code in (0, 1) else []
    if flaky:
        text = "".join(f"flaky, passed when tried again alone: {name}\n" for name in flaky)
        write_file(report, text)
        sys.stdout.write(f"{text}{len(flaky)} flaky of {len(before)} that failed; see {report}\n")
    return code


def _failed(cache: Path) -> set[str]:
    file = cache / "v" / "cache" / "lastfailed"
    return set(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else set()


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
