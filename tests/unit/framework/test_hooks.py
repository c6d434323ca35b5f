"""The rows of hooks agree with the base class and with the switches of the configuration."""

import inspect

import pytest

from pumice.api.conf import SWITCHES
from pumice.core.views import Queue, Task
from pumice.framework.hooks import Hook
from pumice.framework.plugin import HOOKS, Plugin

ASIDE = {"enableHierarchy", "enabledClusterOrder", "enableTargetJob", "enableReservedNodes"}
"""Switches without a hook: one is a property of plugins, three have no policy that is shipped."""


@pytest.mark.parametrize("hook", HOOKS.values(), ids=lambda hook: hook.name)
def test_every_hook_is_a_documented_method_of_the_base_class(hook: Hook) -> None:
    assert hook.method is getattr(Plugin, hook.name)
    assert inspect.getdoc(hook.method)


def test_a_hook_is_asked_about_what_its_method_takes() -> None:
    assert HOOKS["allocatable"].parameters == {"queue": Queue, "task": Task}


def test_every_public_method_of_the_base_class_is_a_hook_or_stands_aside() -> None:
    public = {
        name for name in dir(Plugin) if callable(getattr(Plugin, name)) and not name.startswith("_")
    }
    asked_for_limits = {"faults", "queue_limits", "admission_limit"}
    asked_for_answers = {"node_tests", "own_words", "why_spared"}
    aside = {"vary_by", "bound_victims", *asked_for_limits, *asked_for_answers}
    aside |= {"changes_at", "closes_at", "passed_over", "refusal_numbers", "config_maps"}
    aside |= {"node_terms", "levels_within", "fair_shares", "refused_ahead", "learned_seconds"}
    assert public - HOOKS.keys() == aside
    assert HOOKS.keys() <= public


def test_every_switch_of_a_hook_is_one_of_the_configuration() -> None:
    known = {switch.key for switch in SWITCHES}
    assert {hook.switch for hook in HOOKS.values() if hook.switch} <= known


def test_every_switch_turns_something_off() -> None:
    used = {hook.switch for hook in HOOKS.values()}
    assert {switch.key for switch in SWITCHES} - used == ASIDE


def test_hooks_that_cannot_be_turned_off() -> None:
    always = {hook.name for hook in HOOKS.values() if not hook.switch}
    assert always >= {"job_valid", "on_open", "on_close", "on_place", "on_evict", "gang_evictable"}
