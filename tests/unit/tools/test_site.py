"""What the site makes of a page."""

from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from tools.site import on_page_markdown, on_post_page


def test_fences_and_links_become_what_a_browser_can_show() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="plugins/gang.md"))
    text = "# Gang\n```text output\na\n```\n\n[it](../../Makefile) and [page](../concepts.md)\n"
    assert on_page_markdown(text, page) == (
        "# Gang\n```text\na\n```\n\n`Makefile` and [page](../concepts.md)\n"
    )


def test_a_page_with_examples_leads_to_all_of_them() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="plugins/gang.md"))
    text = on_page_markdown("# Gang\n\n[it](../../examples/a.yaml)\n", page)
    assert "[examples.zip](../examples.zip)" in text
    assert text.endswith("\n\n`examples/a.yaml`\n")


def test_a_page_that_fetches_something_is_refused() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="concepts.md"))
    assert on_post_page('<a href="https://semver.org">x</a>', page) != ""
    with pytest.raises(PluginError, match="fetches <script src"):
        on_post_page('<script src="https://example.com/x.js"></script>', page)
