"""The kinds that are served, and those that are learned."""

from typing import Any

import pytest

from pumice.api.kinds import BUILT_IN, Kinds, guess_plural, kind_of


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.name)
def test_a_kind_is_found_by_name_by_address_and_by_its_objects(kind: Any) -> None:
    kinds = Kinds()
    manifest = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "x"}}
    assert kinds.get(kind_of(manifest)) == kind
    assert kinds.by_plural(kind.group, kind.plural) == kind
    assert kinds.of(manifest) == kind


def test_jobs_of_two_groups_are_two_kinds() -> None:
    kinds = Kinds()
    assert kinds.get("Job.batch") != kinds.get("Job.batch.volcano.sh")


@pytest.mark.parametrize(
    ("kind", "plural"),
    [("Thing", "things"), ("Policy", "policies"), ("Class", "classes"), ("Key", "keys")],
)
def test_plurals_are_guessed(kind: str, plural: str) -> None:
    assert guess_plural(kind) == plural


def test_a_learned_kind_lives_where_its_first_object_does() -> None:
    kinds = Kinds()
    manifest = {"apiVersion": "x.io/v1", "kind": "Thing", "metadata": {"name": "a"}}
    assert not kinds.of(manifest).namespaced
    assert kinds.get("Thing.x.io") in list(kinds)
