"""Relative links of all pages lead to files, and their anchors to headings."""

import re

import pytest

from tests.docs.pages import ROOT, pages

OTHERS = ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "tests/README")
PAGES = [*pages(), *(ROOT / f"{name}.md" for name in OTHERS)]


def prose(path):
    return re.sub(
        r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def anchors(path):
    """Headings as code hosts name them: lower case, marks left out, blanks as hyphens."""
    found = []
    for heading in re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        same = sum(
            anchor == name or re.fullmatch(rf"{re.escape(name)}-\d+", anchor) is not None
            for anchor in found
        )
        found.append(f"{name}-{same}" if same else name)
    return found


def links(path):
    return re.findall(r"(?<!`)\[[^\]]*\]\(([^)\s]+)\)", prose(path))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    broken = []
    for link in links(path):
        if re.match(r"[a-z]+://|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_of_the_docs_is_in_their_index():
    docs = ROOT / "docs"
    named = {link.partition("#")[0] for link in links(docs / "README.md")}
    found = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")}
    assert found - named == {"README.md"}


def test_headings_become_anchors_as_on_code_hosts(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# What to *watch*: `poll`, and [more](x.md)\n\n## Messages\n\n## Messages\n",
        encoding="utf-8",
    )
    assert anchors(page) == ["what-to-watch-poll-and-more", "messages", "messages-1"]
