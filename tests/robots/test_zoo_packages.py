"""Public robots load as they are: all that the installed packages carry.

pip install ".[zoo]"; pytest -m slow tests/robots/test_zoo_packages.py
"""

import csv

import pytest

from drakebots.core.errors import InvalidInput
from tests.helpers.scripts import load_script

PACKAGES, find_files = load_script("robot_zoo.finding", "PACKAGES", "find_files")


@pytest.mark.slow
def test_nine_of_ten_load(tmp_path, capsys):
    """At least 90 % of all legged robots found; none ends in a traceback or a crash."""
    try:
        robots = find_files([], packages=True)
    except InvalidInput:
        pytest.skip(f"none of {', '.join(PACKAGES)} is installed: no robots to load")
    argv = ["--packages", "-o", str(tmp_path), "--stages", "show", "--json"]
    counts = load_script("zoo").main(argv)
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    with capsys.disabled():
        print(f"\n{counts['loaded']} of {counts['of']} public robots load")
    assert counts["of"] == len(robots)
    refused = {row["file"]: row["why"] for row in rows if row["show"] != "ok"}
    assert counts["loaded"] >= 0.9 * counts["of"], refused
    assert {row["show"] for row in rows} <= {"ok", "refused"}, refused
