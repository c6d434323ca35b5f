"""What the site makes of a page."""

from types import SimpleNamespace

from tools.site import on_page_markdown


def test_fences_and_links_become_what_a_browser_can_show() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="plugins/gang.md"))
    text = "```text output\na\n```\n\n[it](../../examples/a.yaml) and [page](../concepts.md)\n"
    assert on_page_markdown(text, page) == (
        "```text\na\n```\n\n`examples/a.yaml` and [page](../concepts.md)\n"
    )
