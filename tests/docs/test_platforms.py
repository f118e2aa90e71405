"""The table of platforms in docs/first_steps.md, against what pip finds for each."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib

import pytest

from tests.helpers.scripts import ROOT

TAGS = {
    "Linux x86-64": [f"manylinux_2_{glibc}_x86_64" for glibc in (34, 28, 27, 17)],
    "Linux aarch64": [f"manylinux_2_{glibc}_aarch64" for glibc in (34, 28, 27, 17)],
    "macOS 15": [f"macosx_{version}_arm64" for version in ("15_0", "14_0", "11_0")],
    "macOS 26": [
        f"macosx_{version}_arm64" for version in ("26_0", "15_0", "14_0", "11_0")
    ],
}
"""Names of wheels that each system takes."""

PURE_PYTHON = {"pycollada"}
"""Packages without wheels, which pip builds from their source anywhere."""


def table() -> list[tuple[str, str, str]]:
    """Rows of the table: system, Python, newest Drake."""
    text = (ROOT / "docs" / "first_steps.md").read_text()
    (part,) = re.findall(r"^\| platform \|.*?\n\n", text, re.M | re.S)
    rows, system = [], ""
    for line in part.strip().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        system = cells[0].split(",")[0] or system
        versions = re.findall(r"3\.\d+", cells[1])
        newest = re.findall(r"1\.\d+", cells[2])
        if system == "macOS arm64":
            rows += [("macOS 15", python, newest[0]) for python in versions[:2]]
            rows += [("macOS 26", python, newest[1]) for python in versions]
        else:
            rows += [
                (system, versions[k], newest[-1])
                for k in sorted({0, len(versions) - 1})
            ]
    return rows


def found(package: str, system: str, python: str, folder) -> str | None:
    """The version of the wheel that pip finds; None without one."""
    options = [word for tag in TAGS[system] for word in ("--platform", tag)]
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet"]
    command += ["--only-binary=:all:", "--python-version", python, *options]
    folder.mkdir(parents=True)
    done = subprocess.run([*command, "-d", folder, package], capture_output=True)
    wheels = [path.name for path in folder.iterdir()]
    for path in folder.iterdir():
        path.unlink()
    return None if done.returncode else wheels[0].split("-")[1]


def test_the_table_names_each_platform():
    systems = {system for system, _, _ in table()}
    assert systems == TAGS.keys() and len(table()) == 10


@pytest.mark.slow
@pytest.mark.parametrize("row", table(), ids="-".join)
def test_every_package_has_a_wheel_there(row, tmp_path):
    """All that drakebots requires, and the Drake that the table names."""
    system, python, newest = row
    if found("threadpoolctl", system, python, tmp_path / "index") is None:
        pytest.skip("no package index is within reach")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    versions = {
        package: found(package, system, python, tmp_path / package)
        for package in project["dependencies"]
    }
    (required,) = (name for name in versions if re.match(r"drake\b", name))
    drake = versions.pop(required)
    assert drake is not None and re.match(rf"{re.escape(newest)}\b", drake)
    without = {re.split("[>=]", name)[0] for name, v in versions.items() if v is None}
    assert without <= PURE_PYTHON
