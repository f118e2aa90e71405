"""Every command of README.md and docs/ runs, word for word, with the example files.

The lines of one block run one after the other in one folder, since later ones read what
earlier ones wrote.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from drakebots.cli import main
from tests.helpers.scripts import ROOT

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_COMMAND = re.compile(r"^ *((?:drakebots|python examples/\S+) .*)$")

_SLOW = (
    *("drakebots design", "drakebots track", "drakebots refine"),
    "drakebots simulate gecko --engine drake",
    *("drakebots plan hamr", "drakebots plan beetle", "drakebots plan gecko"),
    "drakebots sweep hamr",
    *("drakebots plan my_robot.urdf", "python examples/fifth_robot/hopper.py plan"),
)
"""Commands that take longer than a minute, or read what such a command wrote."""

_AGAIN = (
    *("drakebots simulate skinned-leg", "drakebots simulate voxel --gait"),
    "drakebots simulate hamr --gait trot -o",
)
"""Commands of many seconds that run in the blocks of README.md already."""

_QUICK = (
    *("drakebots show", "drakebots limbs", "drakebots attach", "drakebots calibrate"),
    *("drakebots plan lattice.json", "drakebots plan voxel", "drakebots models"),
)
"""Commands that take less than a second and need no other command's files."""


@dataclass(frozen=True)
class Block:
    """Commands of a page without a line between them."""

    page: str
    commands: tuple[str, ...]

    @property
    def slow(self) -> bool:
        skipped = _SLOW if self.page == "README.md" else (*_SLOW, *_AGAIN)
        return any(command.startswith(skipped) for command in self.commands)


def _blocks(page: Path) -> list[Block]:
    found: list[list[str]] = [[]]
    for line in page.read_text().splitlines():
        command = _COMMAND.match(line)
        if command:
            found[-1].append(command[1])
        elif found[-1]:
            found.append([])
    return [Block(page.name, tuple(lines)) for lines in found if lines]


BLOCKS = [block for page in PAGES for block in _blocks(page)]
QUICK = sorted(
    {
        shlex.join(shlex.split(command, comments=True))
        for block in BLOCKS
        for command in block.commands
        if command.startswith(_QUICK)
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A working folder with the example files, as one who tries the pages has it."""
    for path in (ROOT / "examples").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(command: str) -> int:
    """Runs a line of a page and checks that the files it names are there."""
    program, *words = shlex.split(command, comments=True)
    if program == "drakebots":
        code = main(words)
    else:
        code = subprocess.run([sys.executable, *words], timeout=900).returncode
    options = ("-o", "--html", "--plot", "--csv", "--voltages", "--servos")
    options += ("--mjcf", "--urdf", "--mcap", "--vtu")
    for option, value in pairwise(words):
        if option in options:
            path = Path(value)
            assert path.is_dir() or path.stat().st_size > 0, f"{command}: no {value}"
    return code


@pytest.mark.parametrize("command", QUICK)
def test_quick_commands_run(command, folder, capsys):
    assert _run(command) == 0, capsys.readouterr().err


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(
            block,
            marks=pytest.mark.slow if block.slow else pytest.mark.long,
            id=f"{block.page}-{k}",
        )
        for k, block in enumerate(BLOCKS)
        if not all(command.startswith(_QUICK) for command in block.commands)
    ],
)
def test_commands_run_in_order(block, folder, capsys):
    for command in block.commands:
        assert _run(command) == 0, f"{command}: {capsys.readouterr().err}"


def test_pages_name_no_file_that_is_not_there(folder):
    """What a page's commands read is an example, or written by an earlier command."""
    ending = re.compile(r"[\w/]+\.(?:urdf|sdf|yaml|json|csv|stl|vtk|vtu|nc)")
    for block in BLOCKS:
        there = set()
        for command in block.commands:
            words = shlex.split(command, comments=True)
            for before, word in pairwise(["", *words]):
                if not ending.fullmatch(word):
                    continue
                if before.startswith("-") and before not in ("--gait", "--package"):
                    there.add(word)
                else:
                    assert word in there or (folder / word).exists(), command
