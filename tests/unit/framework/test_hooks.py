"""The table of hooks agrees with the base class and with the switches of the configuration."""

import inspect
from typing import Any

import pytest

from pumice.api.conf import SWITCHES
from pumice.framework import hooks
from pumice.framework.hooks import BY_NAME, HOOKS
from pumice.framework.plugin import Plugin

ASIDE = {"enableHierarchy", "enabledClusterOrder", "enableTargetJob", "enableReservedNodes"}
"""Switches without a hook: one is a property of plugins, three have no policy that is shipped."""


def test_every_hook_is_named_once() -> None:
    assert len(BY_NAME) == len(HOOKS)


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: hook.name)
def test_every_hook_is_a_documented_method_of_the_base_class(hook: Any) -> None:
    method = getattr(Plugin, hook.name)
    assert inspect.getdoc(method)


def test_every_public_method_of_the_base_class_is_a_hook_or_stands_aside() -> None:
    public = {
        name for name, value in vars(Plugin).items() if callable(value) and not name.startswith("_")
    }
    aside = {"vary_by", "bound_victims", "faults", "queue_limits", "admission_limit"}
    assert public - BY_NAME.keys() == aside
    assert BY_NAME.keys() <= public


def test_every_switch_of_a_hook_is_one_of_the_configuration() -> None:
    known = {switch.key for switch in SWITCHES}
    assert {hook.switch for hook in HOOKS if hook.switch} <= known


def test_every_switch_turns_something_off() -> None:
    used = {hook.switch for hook in HOOKS}
    assert {switch.key for switch in SWITCHES} - used == ASIDE


def test_every_hook_has_a_known_combining_rule() -> None:
    rules = {value for name, value in vars(hooks).items() if name.isupper() and type(value) is str}
    assert {hook.rule for hook in HOOKS} <= rules


def test_hooks_that_cannot_be_turned_off() -> None:
    always = {hook.name for hook in HOOKS if not hook.switch}
    assert always >= {"job_valid", "on_open", "on_close", "on_place", "on_evict", "gang_evictable"}
