"""All controllers together."""

from pumice.controllers import all_controllers


def test_there_is_one_of_each() -> None:
    names = [controller.name for controller in all_controllers()]
    assert sorted(names) == [
        "cronjob",
        "garbage",
        "hypernode",
        "job",
        "jobflow",
        "jobtemplate",
        "podgroup",
        "queue",
    ]
