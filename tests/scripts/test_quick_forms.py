"""Every command of scripts/bench, papers and evidence runs on a fresh clone.

A command's docstring ends with the keys that its JSON object always has, `JSON: a, b.`;
`environment` is in all. Files that only hold what commands share say so.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.scripts import ROOT, SCRIPTS, last_json, load_script

FOLDERS = (SCRIPTS / "bench", SCRIPTS / "papers", SCRIPTS / "evidence")
FILES = [path for folder in FOLDERS for path in folder.rglob("*.py")]
COMMANDS = sorted(path for path in FILES if "__main__" in path.read_text())

LOOKED_INTO = {
    *("docs_commands", "falling_brick", "gecko_climb", "hamr_gaits", "hamr_perturbed"),
    *("house", "poisoned", "voxel_figures"),
}
"""Commands whose quick forms other tests run, and look at what comes of them."""


def docstring(script: Path) -> str:
    return ast.get_docstring(ast.parse(script.read_text())) or ""


def promised(script: Path) -> set[str]:
    """The keys that a command's docstring names."""
    said = re.search(r"^JSON: ([\w,\s]+)\.$", docstring(script), re.MULTILINE)
    return set(said[1].replace(",", " ").split()) if said else set()


@pytest.mark.parametrize("script", sorted(FILES), ids=lambda path: path.stem)
def test_what_scripts_say_of_themselves(script):
    """A command names its keys, another file that it is none; nothing enters tests."""
    if script in COMMANDS:
        assert promised(script), f"{script}: no line `JSON: key, key.`"
    else:
        assert re.search(r"without\s+a\s+command", docstring(script)), script
    entered = r"^\s*(from|import) tests\b|\"tests\""
    assert not re.search(entered, script.read_text(), re.MULTILINE), script


@pytest.mark.long
@pytest.mark.parametrize("script", COMMANDS, ids=lambda path: path.stem)
def test_help(script, capsys):
    with pytest.raises(SystemExit) as ended:
        load_script(script.stem).main(["--help"])
    assert not ended.value.code
    assert "--quick" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [path for path in COMMANDS if path.stem not in LOOKED_INTO],
    ids=lambda path: path.stem,
)
def test_quick_form(script, tmp_path):
    """From an empty folder, with nothing of the repository to import but the package.

    A quick form takes less than 30 s of an idle core, which `--durations=0` shows.
    """
    clone, here = tmp_path / "clone", tmp_path / "here"
    here.mkdir()
    clone.mkdir()
    for name in ("drakebots", "models"):
        (clone / name).symlink_to(ROOT / name)
    run = subprocess.run(
        [sys.executable, str(script), "--quick"],
        cwd=here,
        env=os.environ | {"PYTHONPATH": str(clone)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    if run.returncode == 2 and "DRAKEBOTS_DATA" in run.stderr:
        pytest.skip("needs the authors' data")
    assert run.returncode == 0, run.stderr[-3000:]
    found = last_json(run.stdout)
    without = {key for key in promised(script) if found.get(key) is None}
    assert not without, f"{script.name} promises {without} beside {set(found)}"
    where = found["environment"]
    assert where["processor"] and where["blas"] and where["wall_s"] > 0
