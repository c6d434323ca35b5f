"""Selectors of a query: which objects they select."""

from typing import Any

import pytest

from pumice.apiserver.failures import RequestError
from pumice.apiserver.selectors import field_selector, label_selector, selector

OBJECT = {
    "metadata": {"name": "p", "namespace": "team", "labels": {"app": "web", "tier": "front"}},
    "spec": {"nodeName": "n1", "hostNetwork": True},
    "status": {"phase": "Running"},
}


@pytest.mark.parametrize(
    ("text", "fits"),
    {
        "app=web": True,
        "app==web": True,
        "app=db": False,
        "app!=db": True,
        "missing!=x": True,
        "app": True,
        "!app": False,
        "!missing": True,
        "app in (web, db),tier=front": True,
        "app in (db)": False,
        "app notin (db,web)": False,
        "missing notin (x)": True,
        "app=web,tier=back": False,
    }.items(),
)
def test_labels_are_selected_by_equality_by_sets_and_by_presence(text: Any, fits: Any) -> None:
    assert label_selector(text)(OBJECT) is fits


@pytest.mark.parametrize(
    ("text", "fits"),
    {
        "metadata.name=p": True,
        "metadata.namespace!=team": False,
        "spec.nodeName=n1,status.phase!=Succeeded,status.phase!=Failed": True,
        "spec.nodeName=": False,
        "status.missing=": True,
        "spec.unschedulable=false": True,
        "spec.hostNetwork=true": True,
    }.items(),
)
def test_fields_are_selected_by_their_path(text: Any, fits: Any) -> None:
    assert field_selector(text)(OBJECT) is fits


def test_an_event_without_the_uid_of_its_object_is_about_any_of_that_name() -> None:
    about = field_selector("involvedObject.name=p,involvedObject.uid=u1")
    assert about({"metadata": {}, "involvedObject": {"name": "p"}})
    assert about({"metadata": {}, "involvedObject": {"name": "p", "uid": "u1"}})
    assert not about({"metadata": {}, "involvedObject": {"name": "p", "uid": "u2"}})


def test_no_selector_selects_all() -> None:
    assert selector("", " ") is None


@pytest.mark.parametrize("text", ["a in b", "=x", "a=b=c", "(a)"])
def test_a_label_selector_that_cannot_be_read_is_a_bad_request(text: str) -> None:
    with pytest.raises(RequestError) as caught:
        label_selector(text)
    assert caught.value.code == 400


def test_a_field_selector_that_cannot_be_read_is_a_bad_request() -> None:
    with pytest.raises(RequestError, match="field=value"):
        field_selector("metadata.name")
