"""Problems and notes of one file."""

import pytest

from drakebots.core.errors import ModelProblem
from drakebots.formats.read import Findings
from drakebots.formats.read.findings import ITEMS


def test_notes_of_one_kind_are_one_counted_line():
    findings = Findings()
    for item in ("a", "b", "a"):
        findings.note("ignored", item)
    findings.note("renamed")
    assert findings.notes == ("ignored: a (2 times), b", "renamed")


def test_a_long_line_counts_the_rest():
    findings = Findings()
    for k in range(ITEMS + 3):
        findings.note("ignored", f"x{k}")
    assert findings.notes[0].endswith(f"x{ITEMS - 1} and 3 more")


def test_all_problems_are_one_message(tmp_path):
    findings = Findings()
    findings.note("changed", "c")
    findings.check(tmp_path / "m.urdf")
    for fault in ("first; mend it", "second", "second"):
        findings.problem(fault)
    with pytest.raises(ModelProblem, match=r"m\.urdf: first; mend it; second$"):
        findings.check(tmp_path / "m.urdf")


def test_strict_makes_notes_problems(tmp_path):
    findings = Findings()
    findings.check(tmp_path / "m.urdf", strict=True)
    findings.note("changed", "c")
    with pytest.raises(ModelProblem, match="changed: c"):
        findings.check(tmp_path / "m.urdf", strict=True)
