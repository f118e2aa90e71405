"""Every shell command of README.md and docs/: it parses, and what is quick runs.

    python scripts/bench/docs_commands.py [--quick]

The lines of a block are taken one after the other in one folder, which begins with the
example files. A line of drakebots is parsed with the options of what it names; files
that an earlier line would have taken long to write are there as results of their kind,
without data. Scripts must have the options that a line gives them, `make` the target,
`pip install '.[extra]'` the extra. Lines that take less than a second run, but not with
--quick. (tests/docs runs all lines of drakebots.)

JSON: docs_commands_ok, docs_commands, failed.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import xarray as xr
from measurement import Measurement

from drakebots.cli import main as drakebots
from drakebots.cli import parse
from drakebots.core.errors import DrakebotsError
from drakebots.results import Result
from drakebots.robots import robots

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "evidence").glob("*.md")),
]

_COMMAND = re.compile(r"^ *((?:drakebots|make|pip install|python \S+\.py)(?: .*)?)$")
_FENCE = re.compile(r"^ *```(\w*)")

OUTPUTS = (
    *("-o", "--html", "--plot", "--csv", "--voltages", "--servos"),
    *("--mjcf", "--urdf", "--mcap", "--vtu"),
)
"""Options that name a file which a command writes."""

QUICK = (
    *("drakebots show", "drakebots limbs", "drakebots attach", "drakebots calibrate"),
    *("drakebots plan lattice.json", "drakebots plan voxel --target"),
    "drakebots models",
)
"""Commands that take less than a second and need no other command's files."""


_EMPTY = {".json": '{"gains": {}}'}
"""What stands in for a file by its ending; others are empty."""

WRITES = ("drakebots attach",)
"""Commands whose file changes what a later line is."""


@dataclass(frozen=True)
class Block:
    """Commands of a page without a line between them."""

    page: str
    commands: tuple[str, ...]


def blocks(page: Path) -> list[Block]:
    """The blocks of commands of a page: in fences for a shell, or indented."""
    found: list[list[str]] = [[]]
    fence = None
    for line in page.read_text().splitlines():
        if mark := _FENCE.match(line):
            fence = mark[1] if fence is None else None
        command = _COMMAND.match(line)
        shell = line.startswith("    ") if fence is None else fence in ("sh", "bash")
        if command and shell:
            found[-1].append(command[1])
        elif found[-1]:
            found.append([])
    name = str(page.relative_to(ROOT))
    return [Block(name, tuple(lines)) for lines in found if lines]


@contextlib.contextmanager
def example_folder() -> Iterator[Path]:
    """A working folder with the example files, as one who tries the pages has it."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        copy_examples(Path(name))
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def copy_examples(folder: Path) -> None:
    """Puts the example files into a folder."""
    for path in (ROOT / "examples").iterdir():
        if path.is_file():
            shutil.copy(path, folder)
    (folder / "examples").symlink_to(ROOT / "examples")


def failure(command: str, *, run: bool) -> str:
    """Fault of a line; "" for none.

    Args:
        command: the line.
        run: whether it runs if it is quick, or is only parsed.
    """
    program, *words = shlex.split(command, comments=True)
    if program == "make":
        rules = (ROOT / "Makefile").read_text()
        lost = [w for w in words if not re.search(rf"^{w}:", rules, re.MULTILINE)]
        return f"no target {lost[0]}" if lost else ""
    if program == "pip":
        extras = re.findall(r"\.\[([\w,]+)\]", command)
        known = (ROOT / "pyproject.toml").read_text()
        lost = [e for e in extras if not re.search(rf"^{e} = ", known, re.MULTILINE)]
        return f"no extra {lost[0]}" if lost else ""
    if program == "python":
        return _of_a_script(words)
    try:
        parse(words)
    except (DrakebotsError, SystemExit) as error:
        return str(error)
    if command.startswith(QUICK if run else WRITES):
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = drakebots(words)
        return said.getvalue().strip()[-300:] if code else ""
    _write_outputs(words)
    return ""


def _of_a_script(words: Sequence[str]) -> str:
    """Fault of a script's command line."""
    script = ROOT / words[0]
    if not script.is_file():
        return f"no script {words[0]}"
    given = [word for word in words if word.startswith("-")]
    before = words[1 : words.index(given[0])] if given else words[1:]
    helped = _help(str(script), *before)
    if helped.returncode:
        return helped.stderr.strip()[-300:]
    _write_outputs(words[1:])
    lost = [option for option in given if option not in helped.stdout]
    return f"no option {lost[0]}" if lost else ""


@cache
def _help(*words: str) -> subprocess.CompletedProcess[str]:
    """What a script says of its options."""
    line = [sys.executable, *words, "--help"]
    return subprocess.run(line, capture_output=True, text=True)


def _write_outputs(words: Sequence[str]) -> None:
    """Writes what later lines of a block only have to find."""
    for option, value in pairwise(words):
        if option not in OUTPUTS or Path(value).exists():
            continue
        if value.endswith(".nc"):
            _stand_in(_kind(words[0], words[1])).save(value)
        elif Path(value).suffix:
            Path(value).write_text(_EMPTY.get(Path(value).suffix, ""))


def _kind(command: str, word: str) -> str:
    """The kind of result that a command line writes."""
    if command != "plan":
        return "legged.simulation"
    name = next((r.name for r in robots().values() if r.is_named(word)), "any")
    return {"hamr": "hamr.plan", "skinned": "quads.plan"}.get(name, "locomotion.plan")


def _stand_in(kind: str) -> Result:
    nothing: dict[str, Any] = {"residuals": {}, "timings": {}, "metrics": {}}
    data = xr.Dataset(coords={"time": ("time", [0.0], {"units": "s"})})
    return Result(kind, "stand-in", "success", "", data, **nothing, provenance={})


def docs_commands_ok_of(*, run: bool = True) -> tuple[int, int, list[str]]:
    """Number of the pages' shell commands that are right, of how many, and the faults.

    Args:
        run: whether the quick ones run, or are only parsed.
    """
    count, failed = 0, []
    for page in PAGES:
        for block in blocks(page):
            with example_folder():
                for command in block.commands:
                    count += 1
                    if why := failure(command, run=run):
                        failed.append(f"{block.page}: {command}: {why}")
    return count - len(failed), count, failed


def main(argv: Sequence[str] | None = None) -> dict[str, Any]:
    measurement = Measurement(__doc__, quick="parse only")
    args = measurement.parse_args(argv)
    ok, count, failed = docs_commands_ok_of(run=not args.quick)
    for line in failed:
        print(line)
    return measurement.report(
        {"docs_commands_ok": ok, "docs_commands": count, "failed": failed}
    )


if __name__ == "__main__":
    sys.exit(bool(main()["failed"]))
