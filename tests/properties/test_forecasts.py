"""Forecasts against what really happens: equal in second, nodes and victims."""

from functools import cache

import pytest

from pumice.diagnosis.forecast import forecast_all
from tests.properties.scenes import FAMILIES, HORIZON, Dice, Scene


@cache
def staged(family: str, seed: int) -> Scene:
    return FAMILIES[family][0](Dice(seed))


SCENES = [(family, seed) for family, (_, count) in FAMILIES.items() for seed in range(count)]


@pytest.mark.sample(4)
@pytest.mark.parametrize(("family", "seed"), SCENES)
def test_a_forecast_is_what_happens(family: str, seed: int) -> None:
    """A job that does not start in time may be forecast for later, or never."""
    scene = staged(family, seed)
    found = forecast_all(scene.world)
    assert found, "a scene without waiting jobs shows nothing"
    for key, reported in found.items():
        job = scene.world.title(key)
        if job not in scene.starts:
            assert reported.in_s is None or reported.in_s > HORIZON, (job, reported)
            continue
        at, places = scene.starts[job]
        assert (reported.in_s, reported.places) == (at, places), (job, reported)
        assert set(reported.victims) == scene.victims.get(job, set()), (job, reported)


def test_there_are_enough_scenes_and_they_show_what_they_are_for() -> None:
    assert len(SCENES) >= 60
    for family in ("preemption", "reclaim", "cooldown"):
        count = FAMILIES[family][1]
        assert any(staged(family, seed).victims for seed in range(count)), family
