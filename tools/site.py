"""Hooks of the documentation site: its first page, its navigation, links that leave the pages."""

import io
import re
import zipfile
from pathlib import Path
from typing import Any, Final

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT: Final = Path(__file__).parents[1]
SECTIONS: Final = {
    "Start": ["tutorial", "concepts", "submit", "embedded-cluster", "glossary"],
    "Cookbook": ["cookbook", "scenarios"],
    "Operate": [
        *("install", "migrating", "operating", "upgrade", "runbook"),
        *("admission", "lint", "resource-claims", "live", "reliability", "threat-model"),
    ],
    "Why and what if": ["explain", "whatif", "dashboard", "record"],
    "Research": ["library", "sim", "sweeps"],
    "Extend": ["writing-plugins", "hooks", "architecture", "style", "releasing"],
    "Reference": [
        *("flags", "codes", "metrics", "permissions", "compatibility", "compat", "performance"),
        *("record-format", "api"),
    ],
}
"""The pages of each part; an unlisted page goes to the reference."""
FOLDERS: Final = {
    "Integrations": "integrations",
    "Plugins": "plugins",
    "Actions": "actions",
    "Decisions": "decisions",
}
_FENCE: Final = re.compile(r"^(```+\w+) [\w ]+$", re.MULTILINE)
"""A fence with words for the tests behind its language, such as `text output`."""
_FETCHED: Final = re.compile(
    r"""<(?:script|link|img|iframe)\s[^>]*(?:src|href)=["']?https?://[^>]*"""
)
_LINK: Final = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>\.\./[^)]*)\)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lay out the navigation."""
    docs = Path(config.docs_dir)
    placed = {name for names in SECTIONS.values() for name in names}
    others = sorted({path.stem for path in docs.glob("*.md")} - placed)
    nav: list[Any] = [{"What it is": "index.md"}]
    for title, names in SECTIONS.items():
        more = others if title == "Reference" else []
        pages = [f"{name}.md" for name in (*names, *more) if (docs / f"{name}.md").exists()]
        nav.append({title: pages})
    for title, folder in FOLDERS.items():
        paths = sorted((docs / folder).glob("*.md"), key=lambda path: (path.stem != "README", path))
        nav.append({title: [f"{folder}/{path.name}" for path in paths]})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Make the first page from the README."""
    text = (ROOT / "README.md").read_text(encoding="utf-8").replace("](docs/", "](")
    text = re.sub(r"\[docs/([a-z0-9-]+)\.md\]", r"[\1]", text)
    beside = r"\]\((?=[A-Z_]+\.md\)|LICENSE\)|examples/)"
    text = re.sub(beside, "](../", text)  # in the repository, not a page
    files.append(File.generated(config, "index.md", content=text))
    files.append(File.generated(config, "examples.zip", content=_examples()))
    return files


def _examples() -> bytes:
    """Pack the files that pages name, for readers without a clone; the same bytes each time."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for path in sorted((ROOT / "examples").rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                info = zipfile.ZipInfo(path.relative_to(ROOT).as_posix())
                info.external_attr, info.compress_type = 0o644 << 16, zipfile.ZIP_DEFLATED
                archive.writestr(info, path.read_bytes())
    return packed.getvalue()


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write links to files outside the pages as their paths; fences keep their language alone."""
    here = Path(page.file.src_uri).parent

    def inside(match: re.Match[str]) -> str:
        path = (Path("docs") / here / match["target"]).as_posix()
        parts: list[str] = []
        for part in path.split("/"):
            parts = parts[:-1] if part == ".." else [*parts, part]
        return match[0] if parts[0] == "docs" else f"`{'/'.join(parts)}`"

    text = _LINK.sub(inside, _FENCE.sub(r"\1", markdown))
    if "examples/" not in text:
        return text
    title, end, rest = text.partition("\n")
    zipped = "../" * len(here.parts) + "examples.zip"
    return (
        f"{title}{end}\n*The files of `examples/` on this page: [examples.zip]({zipped}).*\n{rest}"
    )


def on_post_page(output: str, page: Any, **_: Any) -> str:
    """Refuse a page that fetches something from elsewhere.

    Raises:
        PluginError: it does; the site is then not built.
    """
    if found := _FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} fetches {found[0]}")
    return output
