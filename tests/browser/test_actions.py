"""Acting from a page, and links that hold what was pasted, in a real browser."""

from typing import Any

from pumice.api.kinds import JOB, QUEUE
from pumice.apiserver.served_cluster import ServedCluster
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import About, EmbeddedSource
from tests.browser.test_pages import job
from tests.unit.dashboard.test_live import eventually

MANIFEST = """apiVersion: batch.volcano.sh/v1alpha1
kind: Job
metadata: {name: pasted-über, namespace: default}
spec:
  queue: default
  minAvailable: 1
  tasks: [{name: w, replicas: 1, template: {spec: {containers: [{name: m, image: i}]}}}]
"""


def test_a_job_is_suspended_and_resumed_from_its_page(visit: Any, answers: Any) -> None:
    cluster = ServedCluster()
    cluster.add_nodes(1, {"cpu": "4", "memory": "16Gi"})
    source = EmbeddedSource(cluster.plane, About(title="up", kind="embedded", decides=True))
    made = job("train", 1, 1)
    made["spec"]["tasks"][0]["template"]["spec"]["terminationGracePeriodSeconds"] = 0
    cluster.cluster.create(made)
    cluster.start()

    def phase() -> Any:
        return cluster.cluster.get(JOB, "default", "train")["status"]["state"]["phase"]

    try:
        options = ServingOptions(allow_actions=True)
        with served_dashboard(source, options, answers=answers) as url:
            eventually(lambda: phase() == "Running")
            visitor = visit(url)
            page = visitor.go("/jobs/default/train")
            page.click(".actions >> text=Suspend")
            page.click(".actions >> text=Cancel")
            page.click(".actions >> text=Suspend")
            page.click(".actions [role=alertdialog] >> text=Suspend")
            eventually(lambda: phase() == "Aborted")
            page.wait_for_selector("text=Its state is Aborted")
            visitor.troubles.clear()  # the browser reports that the job's pod group is gone
            page = visitor.go("/jobs")
            page.click("section:has-text('Suspended') >> text=default/train")
            page.click(".actions >> text=Resume")
            eventually(lambda: phase() == "Running")
            page.wait_for_selector("text=It runs: 1 pod")
            visitor.troubles.clear()
            page = visitor.go("/queues/default")
            page.click(".actions >> text=Close")
            page.click(".actions [role=alertdialog] >> text=Close")
            eventually(
                lambda: cluster.cluster.get(QUEUE, "", "default")["status"]["state"] != "Open"
            )
            page.wait_for_selector(".actions >> text=Open")
    finally:
        cluster.stop()


def test_a_page_that_only_shows_has_no_buttons_for_it(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/queues/analytics")
    page.wait_for_selector("text=Who goes first")
    assert page.locator(".actions").count() == 0


def test_what_was_pasted_is_in_the_link(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/whatif")
    page.fill("textarea", MANIFEST)
    page.wait_for_url("**#t=*")
    page.click("text=Drain it")
    page.wait_for_selector(".changes >> text=drain")
    assert "#t=" in page.url  # a further change leaves it
    again = visit(demo).go(page.url.removeprefix(demo))
    eventually(lambda: again.input_value("textarea") == MANIFEST)
    again.fill("textarea", "")
    eventually(lambda: "#" not in again.evaluate("location.href"))


def test_what_is_too_long_for_a_link_is_left_out_and_said(visit: Any, demo: Any) -> None:
    page = visit(demo).go("/whatif")
    lines = [f"#  {number * 2654435761 % 2**32:08x}{number:x}" for number in range(1500)]
    paste = "(e, text) => { e.value = text; e.dispatchEvent(new Event('input', {bubbles: true})); }"
    page.locator("textarea").evaluate(paste, "\n".join(lines))
    page.wait_for_selector("text=too long for a link")
    assert "#t=" not in page.url


def test_a_damaged_link_is_an_empty_page(visit: Any, demo: Any) -> None:
    for hash_text in ("#t=AAAA", "#t=!!", "#t=", "#other"):
        page = visit(demo).go(f"/whatif{hash_text}")
        page.wait_for_selector("textarea")
        assert page.input_value("textarea") == ""
