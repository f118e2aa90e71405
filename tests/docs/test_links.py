"""The pages name files, commands and modules that exist."""

from __future__ import annotations

import importlib
import re
import shlex

import pytest

from drakebots.cli import COMMANDS
from tests.helpers.scripts import ROOT

PAGES = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").glob("*.md"),
    *(ROOT / "docs" / "evidence").glob("*.md"),
    *ROOT.glob("models/*/*.md"),
    *(ROOT / "examples" / "notebooks").glob("*.py"),
]
SOURCES = [
    *PAGES,
    *(
        path
        for part in ("drakebots", "scripts", "tests")
        for path in (ROOT / part).rglob("*.py")
    ),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    text = page.read_text()
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
    for link in links:
        if not link.startswith(("http:", "https:")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_paths_in_prose_exist():
    """`scripts/...py`, `drakebots/...py`, `tests/...py`, wherever they are named."""
    named = re.compile(
        r"\b((?:scripts|drakebots|tests|docs|examples)/[\w/]+\.(?:py|md))\b"
    )
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name in named.findall(path.read_text())
        if not (ROOT / name).exists()
    }
    assert not missing, sorted(missing)


def test_modules_in_prose_exist():
    """`drakebots.a.b` and :mod:, :func:, :class: references."""
    named = re.compile(r":(?:mod|func|class|meth|data|attr):`~?(drakebots[\w.]+)`")
    missing = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        for name in named.findall(path.read_text())
        if not _exists(name)
    }
    assert not missing, sorted(missing)


def _exists(name: str) -> bool:
    parts = name.split(".")
    for k in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:k]))
        except ImportError:
            continue
        for attribute in parts[k:]:
            if not hasattr(found, attribute):
                # Fields of a dataclass without a default are no attributes.
                return attribute in getattr(found, "__annotations__", {})
            found = getattr(found, attribute)
        return True
    return False


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_commands_exist(page):
    for line in re.findall(r"^    drakebots (.*)$", page.read_text(), re.MULTILINE):
        word = shlex.split(line, comments=True)[0]
        assert word in COMMANDS, f"{page.name}: drakebots {line}"


def test_no_message_advises_an_extra_by_the_packages_name():
    """No index has drakebots, so that its name there could be anybody's."""
    advised = re.compile(r"pip install [\"']?drakebots")
    assert not [path for path in SOURCES if advised.search(path.read_text())]
