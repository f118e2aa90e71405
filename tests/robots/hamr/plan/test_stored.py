"""Every plan that came with drakebots, checked again without its solver."""

import json
from dataclasses import replace

import numpy as np
import pytest

from drakebots import stored_plan as plan_of_any_robot
from drakebots.cli import main
from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    InvalidInput,
    UnknownName,
)
from drakebots.results import load_result
from drakebots.robots import names_stored_plan, warn_if_failed
from drakebots.robots.hamr.plan import open_plan, store_plan, stored_plan, stored_plans
from drakebots.robots.hamr.plan.programs import gait_program, hamr_system
from drakebots.robots.hamr.plan.stored import plan_path
from drakebots.robots.hamr.reference import as_reference
from drakebots.trajopt.contact_implicit import audit
from drakebots.trajopt.program import (
    read_arrays,
    save_checkpoint,
)
from tests.helpers.figures import check_legends, drawn_figures

GAITS = [name for name in stored_plans() if name != "jump"]


def opened(name: str):
    _, contact, program, arrays = open_plan(plan_path(name))
    return contact, program, arrays["x"]


def test_there_are_nine_gaits_and_a_jump():
    assert len(GAITS) == 9
    assert "jump" in stored_plans()


@pytest.mark.parametrize("name", [*GAITS, "jump"])
def test_a_stored_plan_obeys_mechanics_and_contact(name):
    problem, program, x = opened(name)
    found = audit(problem, program.view(x))
    assert found["complementarity_max"] <= 1e-6
    assert found["del_residual_max"] <= 1e-8
    # They were planned by the midpoint rule, and are judged by it.
    assert problem.integrator == "midpoint"
    assert found["loop_gap_max"] == found["loop_gap_middles_max"] <= 1e-8
    assert found["penetration_max"] <= 1e-8
    assert max(program.residuals(x).values()) <= 1e-6


@pytest.mark.parametrize("name", GAITS)
def test_no_gait_is_driven_by_a_jump_of_momentum(name):
    """p+ of the last interval is p- of the first: the Legendre condition."""
    problem, program, x = opened(name)
    found = audit(problem, program.view(x))
    assert found["momentum_defect"] <= 1e-8
    assert program.view(x)["q"][-1, 0] >= 9.5  # mm


def test_a_free_momentum_jump_would_be_seen():
    """The defect is there to be found: kick the first velocity interval."""
    problem, program, x = opened(GAITS[0])
    parts = {k: np.array(v) for k, v in program.view(x).items()}
    parts["q"][0, 0] -= 0.1
    assert audit(problem, parts)["momentum_defect"] > 1e-4


# --- run as they are ---


@pytest.fixture(scope="module")
def trot():
    return stored_plan("10hz_card")


def test_a_stored_plan_is_a_result_that_was_not_solved(trot):
    """Its knots are the file's, bit by bit; the metrics are those of its decision."""
    _, program, x = opened("10hz_card")
    assert trot.kind == "hamr.plan" and trot.ok, trot.message
    assert np.array_equal(trot.data.decision.values, x)
    q = program.view(x)["q"]
    assert np.allclose(1e3 * trot.data.base_position.values, q[:, :3], atol=1e-12)
    m = trot.metrics
    assert m["stored"] == "10hz_card" and m["solver"] == "none"
    assert (m["frequency_hz"], m["surface"]) == (10.0, "card")
    assert m["stride_mm"] == pytest.approx(q[-1, 0], abs=1e-9)
    reference = as_reference(trot)
    assert reference.duration == pytest.approx(0.1) and reference.periodic


def test_every_problem_is_kept_with_its_plan():
    for name in GAITS:
        problem = open_plan(plan_path(name))[0]
        assert name == f"{problem.frequency:g}hz_{problem.surface}"


def test_an_older_plan_may_have_a_friction_of_its_own(tmp_path):
    problem, *_, arrays = open_plan(plan_path("10hz_card"))
    posed, rest = replace(problem, surface=0.51), np.zeros(hamr_system().nq)
    _, program = gait_program(posed, rest)
    older = {"frequency": 10.0, "surface": "teflon", "friction": 0.51}
    path = tmp_path / "older.npz"
    save_checkpoint(path, program, arrays["x"], problem=json.dumps(older))
    assert open_plan(path)[0].surface == 0.51


def test_the_jump_is_a_result():
    jump = stored_plan("jump")
    assert jump.ok and not jump.metrics["periodic"]
    assert jump.metrics["apex_rise_mm"] > 10


@pytest.mark.long
def test_a_plan_is_stored_with_what_it_is_fed(trot, tmp_path):
    """What comes back is what went in; the fed voltages only where there are some."""
    assert "feedforward" not in trot.data
    fed = np.random.default_rng(0).uniform(0, 225, (250, 8))
    more = trot.data.assign(feedforward=(("sample", "actuator"), fed, {"units": "V"}))
    path = store_plan(replace(trot, data=more), tmp_path / "fed.npz")
    again = stored_plan(path)
    assert np.array_equal(again.data.feedforward.values, fed)
    assert again.data.drop_vars("feedforward").equals(trot.data)
    assert again.metrics["stored"] == "fed"
    assert plan_of_any_robot(str(path)).data.equals(again.data)
    kept = load_result(again.save(tmp_path / "fed.nc"))
    assert kept.data.equals(again.data)


def test_a_decision_that_breaks_its_program_is_told(trot, tmp_path):
    _, _, program, arrays = open_plan(plan_path("10hz_card"))
    arrays.pop("program")
    x = arrays.pop("x").copy()
    x[program.variables["q"].indices[20, 2]] += 0.01  # mm
    path = tmp_path / "off.npz"
    save_checkpoint(path, program, x, **arrays)
    plan = stored_plan(path)
    assert not plan.ok and "--resume" in plan.message
    with pytest.warns(DrakebotsWarning, match="no solution: failed: stored plan off"):
        warn_if_failed(plan)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"problem": None}, "no stored plan; go on from it with"),
        ({"problem": "{"}, "cannot be posed"),
        (
            {"problem": json.dumps({"rise": 0.012, "weights": {"slack": [1]}, "a": 1})},
            "'a'",
        ),
        ({"problem": json.dumps({"knots": 17, "weights": {"slack": [1]}})}, "belongs"),
        ({"feedforward": np.zeros((5, 7))}, "feedforward must be nx8"),
        ({"feedforward": np.full((5, 8), 230.0)}, "feedforward"),
        ({"x": np.zeros(4)}, "belongs to another program"),
        ({"program": "no json"}, "is not a checkpoint"),
    ],
)
def test_bad_files_are_refused(change, words, tmp_path):
    arrays = read_arrays(plan_path("10hz_card")) | change
    path = tmp_path / "bad.npz"
    with open(path, "wb") as file:
        np.savez(file, **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(FileProblem, match="bad.npz: .*" + words):
        plan_of_any_robot(str(path))


def test_unknown_plans_are_refused_with_those_there_are(trot, tmp_path):
    with pytest.raises(UnknownName, match=r"10hz_card, .*, jump"):
        plan_of_any_robot("hamr:gallop")
    with pytest.raises(UnknownName, match="choose one of: hamr"):
        plan_of_any_robot("cow:walk")
    with pytest.raises(FileProblem, match="no such checkpoint"):
        plan_of_any_robot(str(tmp_path / "none.npz"))
    with pytest.raises(InvalidInput, match="give a plan of HAMR"):
        store_plan(replace(trot, kind="locomotion.plan"), tmp_path / "x.npz")
    assert names_stored_plan("hamr:x") and names_stored_plan("a/b.npz")
    assert not names_stored_plan("gecko:x") and not names_stored_plan("plan.nc")
    assert not names_stored_plan("c:/hamr/plan.nc")


def test_a_checkpoint_of_another_robot_is_no_stored_plan(tmp_path):
    _, program, x = opened("10hz_card")
    path = tmp_path / "best.npz"
    save_checkpoint(path, replace(program, name="dog walk"), x)
    with pytest.raises(FileProblem, match="checkpoint of 'dog walk', no stored plan"):
        plan_of_any_robot(str(path))


# --- on the command line ---


@pytest.mark.long
def test_commands_take_a_stored_plan_by_name(tmp_path, capsys):
    voltages, page = tmp_path / "v.csv", tmp_path / "plan.html"
    assert main(["report", "hamr:10hz_card", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert facts["kind"] == "hamr.plan" and facts["stored"] == "10hz_card"
    assert main(["export", "hamr:10hz_card", "--voltages", str(voltages)]) == 0
    assert len(voltages.read_text().splitlines()) == 251
    assert main(["view", "hamr:jump", "--html", str(page)]) == 0
    assert "</html>" in page.read_text()
    assert main(["track", "hamr:gallop"]) == 2
    assert "choose one of: 10hz_card" in capsys.readouterr().err


@pytest.mark.long
def test_track_executes_a_stored_plan_and_warns_of_a_failed_one(tmp_path, capsys):
    path = tmp_path / "run.nc"
    words = ["--cycles", "1", "--ramp", "0", "-o", str(path)]
    with drawn_figures() as figures:
        plot = ["--plot", str(tmp_path / "run.png")]
        assert main(["track", "hamr:30hz_card", *words, *plot]) == 0
    assert check_legends(figures[0]) == 1
    run = load_result(path)
    assert run.kind == "hamr.track" and run.metrics["cycles"] == 1
    assert "warning" not in capsys.readouterr().err
    failed = replace(stored_plan("30hz_card"), verdict="failed", message="too soft")
    plan = failed.save(tmp_path / "plan.nc")
    assert main(["track", str(plan), *words]) == 0
    said = capsys.readouterr()
    assert "warning: this plan is no solution: failed: too soft" in said.err
