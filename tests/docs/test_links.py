"""Links within the project lead somewhere."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import DOCS, PAGES, ROOT, name_of, read

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def anchors(text: str) -> set[str]:
    """Return the anchors of the headings in ``text``, as GitHub makes them."""
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_lead_somewhere(page: object) -> None:
    broken = []
    for link in _LINK.findall(read(page)):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(read(target))):
            broken.append(link)
    assert broken == []


def test_every_page_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached or page.suffix != ".md":
            continue
        reached.add(page)
        paths = (link.partition("#")[0] for link in _LINK.findall(read(page)) if "://" not in link)
        waiting += [(page.parent / path).resolve() for path in paths if path]
    assert set(DOCS.rglob("*.md")) <= reached
