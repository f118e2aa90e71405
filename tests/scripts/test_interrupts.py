"""Commands that are ended: what the fuzzer of interruptions finds of one of them."""

import signal

import pytest

from tests.helpers.scripts import load_script


@pytest.mark.long
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)], ids=str
)
def test_a_command_that_is_ended(tmp_path, number, code):
    """Without a fault, seconds before it would be done."""
    script = load_script("interrupts")
    ended = script.run("export", tmp_path, sent=number, at=1.0)
    assert ended.code == code, ended.err
    assert not list(script.faults(ended, tmp_path))


def test_faults_are_found(tmp_path):
    script = load_script("interrupts")
    (tmp_path / ".x.nc.part-0-1-0").write_text("left")
    (tmp_path / "x.npz").write_text("nonsense")
    ended = script.Ended("plan", 1, signal.SIGTERM, 1.0, 9.0, 9.0, "Traceback (most")
    faults = list(script.faults(ended, tmp_path))
    for word in ("traceback", "exit code 1", "9.0 s", "is left", "not a checkpoint"):
        assert sum(word in fault for fault in faults) == 1, (word, faults)


def test_differences_of_answers():
    far = load_script("interrupts")._difference
    aim = {"verdict": "success", "objective": 2.0}
    assert far(aim, aim) == 0 and far(aim, aim | {"objective": 2.2}) > 0.09
    assert far(aim, aim | {"verdict": "failed"}) == far(aim, {"verdict": "none"})
    assert far(aim, {"verdict": "none"}) == float("inf")
