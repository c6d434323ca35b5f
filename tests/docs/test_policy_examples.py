"""The policy tests of the example configuration pass, and notice what becomes of its lines."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from pumice.cli.main import main

ROOT = Path(__file__).parents[2]
TOLERATED = {
    "reclaim before preempt": "they take from different queues",
    "backfill before reclaim": "pods without requests take no room from others",
    "tiers 1 and 2 as one": "no plugin of the second names victims or admits jobs",
    "enablePreemptable: true of drf": "it is in a tier that is not asked after a strict one",
    "without the plugin nodeorder": "binpack decides alone where both score",
    "without binpack.weight of binpack": "a weight matters beside another plugin's score",
}
"""Changes that no test notices, and why that is right."""


@pytest.mark.slow
def test_they_notice_every_change_that_matters() -> None:
    words = ["test", str(ROOT / "examples" / "policy"), "--mutate", "-o", "json", "-j", "1"]
    answer = CliRunner().invoke(main, words)
    changes = json.loads(answer.stdout)["changes"]
    missed = {each["change"] for each in changes if each["noticedBy"] is None}
    assert missed <= set(TOLERATED)
    assert len(changes) > 3 * len(missed)
