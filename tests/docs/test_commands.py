"""Every command of README.md and docs/ runs, word for word, with the example files.

The lines of one block run one after the other in one folder, since later ones read what
earlier ones wrote.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from drakebots.cli import main
from tests.helpers.scripts import load_script

bench = load_script("docs_commands")

_MEASURED = (
    *("drakebots identify", "drakebots compare"),
    "drakebots plan monster --motion trot.",
)
"""Commands that read measurements, which are the reader's own."""

_SLOW = (
    *("drakebots design", "drakebots track", "drakebots refine"),
    "drakebots simulate gecko --engine Drake",
    *("drakebots plan hamr", "drakebots plan beetle", "drakebots plan gecko"),
    *("drakebots sweep hamr", "drakebots mpc monster", "drakebots plan voxel --search"),
    *("drakebots plan my_robot.urdf", "python examples/fifth_robot/hopper.py plan"),
)
"""Commands that take longer than a minute, or read what such a command wrote."""

_AGAIN = (
    *("drakebots simulate skinned-leg", "drakebots simulate voxel --gait"),
    "drakebots simulate hamr --gait trot -o",
)
"""Commands of many seconds that run in the blocks of README.md already."""


def _is_slow(block) -> bool:
    skipped = _SLOW if block.page == "README.md" else (*_SLOW, *_AGAIN)
    return any(command.startswith(skipped) for command in block.commands)


def _runs(command: str) -> bool:
    """Whether it is a line of drakebots, or of an example that is used like it."""
    return command.startswith(("drakebots ", "python examples/"))


ALL = [block for page in bench.PAGES for block in bench.blocks(page)]
KEPT = [replace(b, commands=tuple(filter(_runs, b.commands))) for b in ALL]
BLOCKS = [
    block
    for block in KEPT
    if block.commands and not any(c.startswith(_MEASURED) for c in block.commands)
]
QUICK = sorted(
    {
        shlex.join(shlex.split(command, comments=True))
        for block in BLOCKS
        for command in block.commands
        if command.startswith(bench.QUICK)
    }
)


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """A working folder with the example files, as one who tries the pages has it."""
    bench.copy_examples(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _run(command: str) -> int:
    """Runs a line of a page and checks that the files it names are there."""
    program, *words = shlex.split(command, comments=True)
    if program == "drakebots":
        code = main(words)
    else:
        code = subprocess.run([sys.executable, *words], timeout=900).returncode
    for option, value in pairwise(words):
        if option in bench.OUTPUTS:
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
            marks=pytest.mark.slow if _is_slow(block) else pytest.mark.long,
            id=f"{block.page}-{k}",
        )
        for k, block in enumerate(BLOCKS)
        if not all(command.startswith(bench.QUICK) for command in block.commands)
    ],
)
def test_commands_run_in_order(block, folder, capsys):
    for command in block.commands:
        assert _run(command) == 0, f"{command}: {capsys.readouterr().err}"


def test_pages_name_no_file_that_is_not_there(folder):
    """What a page's commands read is an example, or written by an earlier command."""
    ending = re.compile(r"[\w/]+\.(?:urdf|sdf|yaml|json|csv|stl|obj|vtk|vtu|nc)")
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


@pytest.mark.long
def test_all_shell_commands_parse():
    ok, count, failed = bench.docs_commands_ok_of(run=False)
    assert ok == count > 100, failed


@pytest.mark.parametrize(
    "command",
    [
        "drakebots simulate hamr --gaits trot",
        "drakebots plan voxel --forward 1",
        "make tset",
        "pip install '.[swep]'",
        "python scripts/bench/no_script",
        "python scripts/bench/house.py --lists",
    ],
)
def test_a_wrong_command_is_seen(command, folder):
    assert bench.failure(command, run=False)
