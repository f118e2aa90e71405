"""LittleDog's step-up: the authors' program, and answers that are physical."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from drakebots.core.errors import UnknownName
from tests.helpers.scripts import load_script

littledog = load_script("littledog_program")


def _script():
    return load_script("littledog_stepup")


@pytest.fixture(scope="module")
def folder() -> Path:
    """The authors' files, or a skip."""
    try:
        return _script().data_folder(None)
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=littledog.TERRAINS)
def problem(request, folder):
    """Their program on each ground, and the feet's positions."""
    return littledog.authors_program(folder, request.param)


def test_size(problem):
    """As the authors' file has it."""
    target, _ = problem
    assert target.num_variables == 2124
    assert target.variables["h"].lower.min() == pytest.approx(1 / 29)
    assert target.variables["h"].upper.max() == pytest.approx(4 / 29)


def test_stored_optimum(folder, problem, monkeypatch):
    """Its objective to rounding, its residuals to the tolerance of its solver; the
    judge accepts it by the tolerance stated, not by ours."""
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")  # nothing is solved
    target, feet = problem
    x = littledog.stored(target, folder)
    assert target.objective(x) == pytest.approx(52.070460532893584, rel=1e-15)
    residuals = {name: value for name, (value, _) in target.violations(x).items()}
    # The solver's tolerance of 1e-5 shows where products and bounds are active;
    # half of its slacks are 0, below our bound of 1e-6.
    loose = {"complementarity": 2e-7, "eta": 8e-7, "s": 1.01e-6}
    for name, value in residuals.items():
        assert value < loose.get(name, 1e-7), name
    verdict = littledog.judge(target, feet, x, littledog.STORED_TOLERANCE)
    assert verdict.valid
    assert verdict.feet_in_step == 0
    assert verdict.slack == pytest.approx(1e-6)
    assert verdict.complementarity > 1.1e-6
    assert not littledog.judge(target, feet, x).valid


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
    """A wrapped joint, a foot in the step, a slack and a residual."""
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
    assert verdict.feet_in_step > 0
    assert verdict.cut_between_knots > 0.01


def test_sides_change_once(folder, problem):
    """A foot is on the step from where it stays beyond the edge."""
    target, feet = problem
    q = target.view(littledog.guess(target, folder, 0, noise=0.0))["q"].copy()
    plain = littledog.sides_of(feet, q)
    assert [int(np.argmax(side)) for side in plain.T] == [11, 11, 20, 20]
    q[5, 0] += 0.4  # all feet are beyond the edge at one early knot
    np.testing.assert_array_equal(littledog.sides_of(feet, q), plain)
    q[15, 0] -= 0.4  # and back at a later one
    assert littledog.sides_of(feet, q).argmax(axis=0).min() == 15


def test_decided_sides_are_the_authors_ground(folder, monkeypatch):
    """Rows of feet on their sides are the same; those of others violate `side`."""
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")  # nothing is solved
    target, feet = littledog.authors_program(folder)
    start = target.view(littledog.guess(target, folder, 0))["q"]
    narrow = littledog.decided(folder, littledog.sides_of(feet, start), 30.0)
    rng = np.random.default_rng(0)
    x = littledog.stored(target, folder) + 1e-3 * rng.standard_normal(2124)
    own = littledog.sides_of(feet, target.view(x)["q"])
    same = littledog.decided(folder, own, 30.0)
    for name in ("distance", "slip", "cone", "complementarity", "dynamics"):
        theirs, ours = target.rows[name], same.rows[name]
        np.testing.assert_allclose(
            same.values(x)[ours.start : ours.stop],
            target.values(x)[theirs.start : theirs.stop],
            atol=1e-12,
            err_msg=name,
        )
    assert same.violations(x)["side"][0] == 0
    assert narrow.violations(x)["side"][0] > 0.01
    assert same.objective(x) == pytest.approx(target.objective(x), rel=1e-14)


def test_completed_slip_is_the_least(folder, problem):
    """psi and eta too large are made small again; the slack is within its bounds."""
    target, _ = problem
    x = littledog.stored(target, folder)
    parts = {k: v.copy() for k, v in target.view(x).items()}
    parts["psi"] += 0.3
    parts["eta"] += 0.3
    spoilt = target.pack(parts)
    row = target.rows["slip"]
    assert np.abs(target.values(spoilt)[row.start : row.stop]).max() < 1e-7
    again = littledog.completed(target, spoilt)
    whole = target.violations(again)
    assert whole["slip"][0] < 1e-14
    assert whole["s"][0] == whole["eta"][0] == whole["psi"][0] == 0
    assert whole["complementarity"][0] < 2e-7
    eta = target.view(again)["eta"].reshape(-1, 4)
    psi = target.view(again)["psi"].ravel()
    assert (np.minimum(eta.min(axis=1), psi) < 1e-12).all()


def test_unknown_terrain(folder):
    """The error lists the names."""
    with pytest.raises(UnknownName, match="authors, box"):
        littledog.program(folder, "moon")


@pytest.mark.long
def test_one_start(folder):
    """An answer on both grounds to 1e-6, better than the stored optimum."""
    result = littledog.run(folder, "authors", seed=0)
    assert result.feasible, str(result)
    assert result.objective < 40
    assert result.seconds > 0
    target, feet = littledog.authors_program(folder, "box")
    verdict = littledog.judge(target, feet, littledog.completed(target, result.x))
    assert verdict.valid, verdict


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
    found = _script().starts("authors", 3, folder=folder)
    assert found.num_feasible == 3, str(found)
    assert found.best.objective < 32.6
