"""The promise of 1.x: what a user could call, write or read stays."""

import re

from tests.present import present
from tools.packages import ROOT
from tools.surface import FILE, gone

PAGE = ROOT / "docs" / "compatibility.md"
HELP = """
Pumice 1.x promises what tests/surface-1.txt lists, and the lines above are not true any more.
Keep the old name beside the new one and let it warn, as docs/compatibility.md says.
A line that was only the answer about an example that changed may be deleted from the file.
"""


def test_nothing_that_was_promised_is_gone() -> None:
    missing = gone()
    assert not missing, "\n".join(missing) + HELP


def test_the_page_names_every_part_of_the_promise() -> None:
    parts = {line.partition(" ")[0] for line in FILE.read_text(encoding="utf-8").splitlines()}
    page = PAGE.read_text(encoding="utf-8")
    table = present(re.search(r"(?s)\| part \|.*?\n\n", page))[0]
    assert set(re.findall(r"\| `(\w+)` \|", table)) == parts
