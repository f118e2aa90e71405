"""Tags that the installed Drake reads, and those it passes over."""

import pytest

from drakebots.formats.read import Findings
from drakebots.formats.read import findings as tags
from drakebots.formats.read.findings import drake_tags, note_ignored_tags
from drakebots.formats.read.tree import read_tree


def ignored(text, *, urdf=True):
    findings = Findings()
    note_ignored_tags(read_tree(text), findings, urdf=urdf)
    return findings.notes


def test_the_tags_of_the_installed_drake():
    assert {"ball_constraint", "gear_ratio", "linear_bushing_rpy"} <= drake_tags()
    assert not {"gear_ration", ""} & drake_tags()


def test_a_tag_of_a_newer_drake(tmp_path, monkeypatch):
    """It is ignored exactly where the installed Drake does not read it."""
    text = "<robot><drake:new_constraint/></robot>"
    assert ignored(text) == ("Drake ignores: <drake:new_constraint>",)
    (tmp_path / "libdrake.so").write_bytes(b"\0drake:new_constraint\0")
    newer, unknown = drake_tags(tmp_path), drake_tags(tmp_path / "none")
    for known in (newer, unknown):
        monkeypatch.setattr(tags, "drake_tags", lambda known=known: known)
        assert ignored(text) == ()


def test_ignored_tags_are_counted_and_not_entered():
    gazebo = "<gazebo><mu1>1</mu1><plugin/></gazebo>"
    text = f"<robot>{2 * gazebo}<link><self_filter/></link></robot>"
    assert ignored(text) == ("Drake ignores: <gazebo> (2 times), <self_filter>",)


@pytest.mark.parametrize("text", ["<robot><link/><drake:joint/></robot>"])
def test_known_tags_are_not_noted(text):
    assert ignored(text) == ()


def test_plain_tags_of_sdf_are_left_to_libsdformat():
    assert ignored("<sdf><model><odd/></model></sdf>", urdf=False) == ()
