"""LittleDog's step-up: the authors' program, and answers that are physical."""

from __future__ import annotations

from pathlib import Path

import casadi as ca
import littledog_program as littledog
import numpy as np
import pytest

from drakebots.core.errors import InvalidInput
from drakebots.trajopt.solvers.continuation import multi_start
from tests.helpers.scripts import load_script


def _script():
    return load_script("littledog_stepup.py")


@pytest.fixture(scope="module")
def folder() -> Path:
    """The authors' files, or a skip."""
    try:
        return _script().data_folder(None)
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def problem(folder):
    """Their program and the feet's positions."""
    return littledog.authors_program(folder)


def test_size(problem):
    """As the authors' file has it."""
    target, _ = problem
    assert target.num_variables == 2124
    assert target.variables["h"].lower.min() == pytest.approx(1 / 29)
    assert target.variables["h"].upper.max() == pytest.approx(4 / 29)


def test_stored_optimum(folder, problem):
    """Its objective to 1e-10, its residuals to the tolerance of its solver."""
    target, feet = problem
    x = littledog.stored(target, folder)
    assert target.objective(x) == pytest.approx(52.070460532893584, rel=1e-10)
    residuals = {name: value for name, (value, _) in target.violations(x).items()}
    # The solver's tolerance of 1e-5 shows where products and bounds are active;
    # half of its slacks are 0, below our bound of 1e-6.
    loose = {"complementarity": 2e-7, "eta": 8e-7, "s": 1.01e-6}
    for name, value in residuals.items():
        assert value < loose.get(name, 1e-7), name
    verdict = littledog.judge(target, feet, x)
    assert verdict.feet_in_box == 0
    assert verdict.joint_jump < 1.5
    assert verdict.slack == pytest.approx(1e-6)


def test_guess_is_theirs_plus_noise(folder, problem):
    """Seeds give different starts, with the requested noise."""
    target, _ = problem
    plain = littledog.guess(target, folder, 0, noise=0.0)
    noisy = littledog.guess(target, folder, 0) - plain
    assert np.std(noisy) == pytest.approx(0.01, rel=0.1)
    assert np.abs(littledog.guess(target, folder, 1) - plain - noisy).max() > 1e-3
    q = target.view(plain)["q"]
    # Their guess stands a centimetre above the first pose.
    assert q[0] == pytest.approx(littledog.FIRST[littledog.ORDER], abs=0.0101)
    assert target.view(plain)["h"] == pytest.approx(4 / 29)


def test_judge_sees_what_is_wrong(folder, problem):
    """A wrapped joint, a foot in the box, a slack and a residual."""
    target, feet = problem
    x = littledog.stored(target, folder)
    parts = {k: v.copy() for k, v in target.view(x).items()}
    parts["s"] = np.maximum(parts["s"], 1e-6)
    parts["eta"] = np.maximum(parts["eta"], 0)
    parts["q"][10, 8] += 3.0
    parts["s"][3] = 1e-2
    verdict = littledog.judge(target, feet, target.pack(parts))
    assert not verdict.valid
    assert verdict.joint_jump > 1.5
    assert verdict.slack == 1e-2
    assert verdict.worst_residual > 1e-3
    parts["q"][12:15, 0] += 0.3
    parts["q"][12:15, 2] -= 0.1
    verdict = littledog.judge(target, feet, target.pack(parts))
    assert verdict.feet_in_box > 0
    assert verdict.cut_between_knots > 0.01


def test_ramp_is_the_step_away_from_its_edge():
    """The easy ground rises where the step does, with the frame of its surface."""
    ramp = littledog.Ramp(0.02)
    points = np.array([[0.0, 0, 0.05], [0.25, 0, 0.055], [0.5, 0, 0.2]])
    phi, gradient = ramp.evaluate(points)
    assert phi == pytest.approx([0.05, 0.0, 0.09], abs=1e-9)
    n, t1, t2 = (np.array(ca.evalf(v)).ravel() for v in ramp.frame(ca.SX(points[1])))
    # On the surface phi is exact to first order.
    assert n == pytest.approx(gradient[1], abs=1e-12)
    assert np.cross(t1, t2) == pytest.approx(n, abs=1e-12)
    scaled = littledog.Ramp(0.02).scaled(1e-3)
    assert scaled.evaluate(1e3 * points)[0] == pytest.approx(1e3 * phi, abs=1e-6)
    with pytest.raises(InvalidInput, match="width"):
        littledog.Ramp(0.0)


@pytest.mark.long
def test_quick_start(folder):
    """One start with fewer stages is an answer better than the stored one."""
    result = littledog.run(folder, quick=True, threads=2, seed=0)
    assert result.feasible, str(result)
    assert result.objective < 52.07
    assert result.worst[1] < 1e-6


def test_missing_data(tmp_path, capsys):
    """One line says where it looked; the exit code is 2."""
    with pytest.raises(SystemExit) as error:
        _script().main(["--quick", "--data", str(tmp_path)])
    assert error.value.code == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert str(tmp_path) in line
    assert "--data" in line


@pytest.mark.slow
def test_three_starts(folder):
    """All three are answers below the authors' best."""
    starts = multi_start(lambda seed: littledog.run(folder, False, 2, seed), range(3))
    assert starts.num_feasible == 3, str(starts)
    assert starts.best.objective < 52.07
