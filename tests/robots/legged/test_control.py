"""Robots under control in simulation: physics of the plant, results, CLI."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from drakebots import build_robot, load, plot, record
from drakebots.cli import main
from drakebots.control import FEEDBACK, Command, Law, course_findings, default_cost
from drakebots.control.references import WEIGHTS
from drakebots.core.errors import InvalidInput, UnknownName
from drakebots.core.run import RunEnd, Verdict
from drakebots.multibody import Step, fell_at, tilted
from drakebots.results import load_result
from drakebots.robots.legged import Control, Gait, Mpc, Push, Rigid, control
from drakebots.robots.legged.control import INTERVAL, SIZE, SPEED, Run
from tests.helpers.scripts import is_picture, load_script
from tests.helpers.starts import first_that_holds

tracking = load_script("control_baselines").tracking

MONOPOD, GAINS = load("monopod"), Mpc(feedback="gains")


def test_a_push_gives_its_impulse():
    """In the air, m dv = F T of the whole robot, at masses off by 20 %.

    Drake's steps keep the momentum of moving joints to first order.
    """
    force, duration = 40.0, 0.02
    pushes = (Push(-force, 0.0, duration, 0.0),)
    rigid = Rigid(mass_error=0.2, time_step=1e-4)
    posed = Control(MONOPOD, pushes=pushes, plant=rigid, duration=0.05)
    run = Run(posed, tracking)
    q, v = run.plant.state()
    q[run.reference.axes["z"]] += 1.0
    run.plant.start(q, v)
    run.simulate()
    plant, context = run.own.plant, run.own.plant.CreateDefaultContext()
    mass = 1.2 * plant.CalcTotalMass(context)
    assert mass == pytest.approx(1.2 * MONOPOD.summary.mass)
    plant.SetPositionsAndVelocities(context, np.concatenate(run.plant.state()))
    momentum = mass * plant.CalcCenterOfMassTranslationalVelocityInWorld(context)
    assert momentum[0] == pytest.approx(-force * duration, rel=2e-3)
    assert momentum[2] == pytest.approx(-mass * 9.81 * 0.05, rel=2e-3)


@pytest.fixture(scope="module")
def run():
    pushes = (Push(4.0, 0.2, direction=0.0),)
    own = Mpc(delay=0.005, iterations=3)
    return control(Control(MONOPOD, pushes=pushes, controller=own, duration=0.6))


@pytest.mark.long
def test_a_hopper_takes_a_push_on_its_one_foot(run):
    assert run.ok and not run.metrics["fell"]
    assert run.metrics["solves"] == 36
    impulse = np.trapezoid(run.data.push.values[:, 0], run.data.time.values)
    assert impulse == pytest.approx(0.4, rel=0.01)
    assert run.metrics["forward_m"] > 1e-3  # it did feel it
    assert run.data.horizon.shape[1:] == (21, 2, 3)
    # A horizon begins where the robot is, and its foot's path is above the ground.
    k = np.searchsorted(run.data.time.values, run.data.horizon_time.values[3])
    near = run.data.horizon.values[3, 0, 0] - run.data.base_position.values[k]
    assert np.abs(near).max() < 0.01
    assert run.data.horizon.values[:, :, 1, 2].min() > 0.0


@pytest.mark.long
def test_a_result_is_saved_plotted_and_shown(run, tmp_path):
    loaded = load_result(run.save(tmp_path / "run.nc"))
    assert loaded == run
    assert is_picture(plot(loaded, tmp_path / "run.png"))
    scene = record(loaded)
    for path in ("push/0/head", "horizon/0", f"horizon/{len(run.data.plan) - 1}"):
        assert scene.meshcat.HasPath(f"/drake/{path}")


def test_without_control_it_falls():
    """The fall is found: with torques that hold nothing the hopper tips over."""
    weak = Control(MONOPOD, pushes=(Push(60.0, 0.1, 0.2),), duration=1.5)
    strong = Push(200.0, 0.1, 0.2, 0.0)
    now = Mpc(delay=0.0)
    fell = control(replace(weak, pushes=(strong,), controller=now))
    assert fell.metrics["fell"] and not fell.ok
    assert "fell at" in fell.message and fell.metrics["fell_at_s"] > 0.1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("50N@1s", Push(50, 1)),
        ("50@1", Push(50, 1)),
        ("-20N@500ms,0.2s", Push(-20, 0.5, 0.2)),
        ("5N@1s,0.2s,180deg", Push(5, 1, 0.2, np.pi)),
    ],
)
def test_pushes_are_read(words, expected):
    assert Push.from_word(words, "--push") == expected


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--goal", "1000,0"], "out of the terrain"),
        (["--goal", "1,nan"], "goal"),
        (["--goal", "1"], "2 values"),
        (["--push", "50N"], "50N@1s"),
        (["--push", "50kg@1s"], "no unit"),
        (["--push", "50N@-1s"], "time"),
        (["--gait", "gallop"], "trot"),
        (["--plant", "mass_error=-1"], "mass_error"),
        (["--terrain", "Step:start=1,end=0.5,height=0.1"], "end"),
        (["--start", "side"], "lie on its side"),
        (["--controller", "feedback=pd"], "servos"),
    ],
)
def test_bad_input_is_one_line(words, says, capsys):
    assert main(["mpc", "monopod", "--duration", "0.1", *words]) == 2
    lines = capsys.readouterr().err.splitlines()
    errors = [line for line in lines if line.startswith("drakebots:")]
    assert len(errors) == 1 and says in errors[0] and lines[-1] == errors[0]


@pytest.mark.parametrize(
    ("model", "says"), [("brick", "actuators"), ("gecko", "above its feet"), ("x", "x")]
)
def test_models_that_cannot_be_controlled(model, says, capsys):
    assert main(["mpc", model]) == 2
    assert says in capsys.readouterr().err


def test_the_command_writes_what_is_asked_for(tmp_path, capsys):
    page, out = tmp_path / "run.html", tmp_path / "run.nc"
    words = ["mpc", "monopod", "--duration", "0.2", "--push", "2N@0.1s,50ms,0deg"]
    assert main([*words, "--html", str(page), "-o", str(out), "--json"]) == 0
    reported = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert reported["solve_hz"] > 0 and reported["fell"] is False
    assert page.stat().st_size > 1e6 and load_result(out).kind == "legged.mpc"


@pytest.mark.parametrize("feedback", FEEDBACK)
def test_a_robot_is_held_to_its_plan_between_solves(feedback):
    """The hopper takes its push, within the efforts' limits: Drake's servos have the
    stiffness of the robot's weight, and the plan's targets."""
    given = {"pushes": (Push(4.0, 0.2, direction=0.0),), "duration": 0.6}
    own = Mpc(feedback=feedback, delay=0.005, iterations=3)
    run = control(Control(MONOPOD, controller=own, **given))
    assert run.ok and run.metrics["tilt_max_deg"] < 10
    limits = build_robot(MONOPOD).plant.GetEffortUpperLimits()
    assert (np.abs(run.data.torque.values).max(axis=0) <= limits + 1e-9).all()


@pytest.mark.long
def test_it_trots_up_a_step():
    """All four feet end on the step, and the base as high above it as it stood.

    When its hind feet get there depends on how the processor rounds: on one they were
    in front of the edge after 4 s.
    """
    ground = Step(0.4, 3.0, 0.04)
    walk = {"gait": "trot", "goal": (1.0, 0.0), "speed": 0.3, "terrain": ground}
    run = control(
        Control("mini_cheetah", duration=6.0, controller=Mpc(delay=0.0), **walk)
    )
    assert run.ok and not run.metrics["fell"]
    feet = run.data.foot_position.values[-50:]
    assert (feet[..., 0] > ground.start).all()
    height = run.data.base_position.values[:, 2]
    assert height[-50:].mean() - height[0] == pytest.approx(ground.height, abs=0.01)


@pytest.mark.long
def test_closed_loops_stay_closed_under_control():
    """Four five-bar legs stand, pushed; every plan closes its loops, as the plant."""
    push = Push(5.0, 0.1, 0.1, 0.0)
    problem = Control(
        "minitaur", pushes=(push,), duration=0.4, controller=Mpc(delay=0.01)
    )
    done = control(problem)
    assert done.ok and done.metrics["tilt_max_deg"] < 5
    assert done.residuals["loop gap [m]"] < 1e-4
    assert done.metrics["solve_failures"] < 0.3 * done.metrics["solves"]


def test_bench_gives_rates():
    bench = load_script("mpc")
    figures = bench.main(["--only", "hopper"])
    assert figures["hopper_hz"] > 0 and figures["hopper_p99_ms"] > 0
    # The same start for every controller, another one for every seed.
    one, same, other = (bench.pushed(MONOPOD, seed, 50.0) for seed in (1, 1, 2))
    assert one == same and one.pushes != other.pushes
    assert abs(one.plant.mass_error) == abs(one.plant.friction_error) == 0.2


def test_answers_that_come_too_late_are_said():
    run = control(Control(MONOPOD, controller=Mpc(delay=0.1), duration=0.2))
    late = run.metrics["solve_late"]
    assert late > run.metrics["solves"]
    assert (
        f"{late} of {late + run.metrics['solves']} periods passed over" in run.message
    )


def test_problems_refuse():
    with pytest.raises(UnknownName, match="servos"):
        Mpc(feedback="lqr")
    with pytest.raises(InvalidInput, match="of the horizon of"):
        control(Control(MONOPOD, controller=Mpc(step=1e-5)))


def test_defaults_shrink_with_the_robot():
    """Below SIZE by Froude: lengths as l, times and speeds as sqrt(l)."""
    asked = Control("hamr", gait="trot", goal=(0.1, 0.0))
    large, small = asked.sized(0.5, 4), asked.sized(SIZE / 16, 4)
    assert large.gait == Gait()
    assert (large.speed, large.controller.step) == (SPEED, INTERVAL)
    assert small.speed == pytest.approx(SPEED / 4)
    assert small.controller.step == pytest.approx(INTERVAL / 4)
    assert small.gait.period == pytest.approx(Gait().period / 4)
    assert small.gait.clearance == pytest.approx(Gait().clearance / 16)
    crawl = Control("hamr", gait="crawl")
    for legs, duty in ((4, 0.775), (6, 0.85), (2, 0.55)):
        gait = crawl.sized(0.5, legs).gait
        # As long in the air as in a trot, one after the other.
        assert gait.period == pytest.approx(legs / 2 * Gait().period)
        assert gait.duty == pytest.approx(duty)
    step = Mpc(step=0.01)
    own = Control("hamr", gait=Gait(0.1, 0.6, 0.002), speed=0.0, controller=step)
    assert own.sized(0.01, 4) == own
    assert Control("hamr").sized(0.01, 4).speed == 0


@pytest.mark.parametrize(
    "asked, legs, trots",
    [
        ({"goal": (1.0, 0.0)}, 4, True),
        ({"goal": (1.0, 0.0)}, 2, True),
        ({"goal": (1.0, 0.0)}, 1, False),
        ({"goal": (0.0, 0.0), "turn": 1.0}, 4, False),
        ({"speed": 0.2}, 4, True),
        ({"turn": 0.3}, 4, True),
        ({}, 4, False),
        ({"start": "side", "goal": (1.0, 0.0)}, 4, False),
        ({"gait": "none", "goal": (1.0, 0.0)}, 4, False),
        ({"gait": "trot"}, 4, True),
    ],
)
def test_who_has_somewhere_to_go_trots(asked, legs, trots):
    gait = Control("mini_cheetah", **asked).sized(0.3, legs).gait
    assert gait == (Gait() if trots else "none")


DONE = RunEnd(Verdict.SUCCESS, "reached 2 s", 2.0, 1.0, 100)
STOOD = {
    "fell": False,
    "fell_at_s": None,
    "upright_at_s": None,
    "forward_m": 0.0,
    "sideways_m": 0.0,
    "turned_deg": 0.0,
    "solves": 100,
    "solve_failures": 0,
    "solve_hz": 100.0,
    "solve_late": 0,
}


def judged(problem, figures, end=DONE, tilt=0.0):
    """The verdict of a robot 1 m high with these figures."""
    problem, figures = problem.sized(1.0, 1), STOOD | figures
    fell = fell_at(figures["fell_at_s"])
    found = [fell, *course_findings(figures, problem, 1.0), tilted(tilt)]
    run = SimpleNamespace(problem=problem, end=end)
    return Run.verdict(run, figures, found)


def test_who_stands_still_has_not_gone_to_its_goal():
    """A goal without a speed asks for nothing, others for a share of the distance."""
    asked = Control(MONOPOD, goal=(0.5, 0.0), duration=2.0)

    def at(left, **more):
        problem = replace(asked, **more).sized(1.0, 1)
        return judged(problem, {"goal_distance_m": left})

    verdict, message = at(0.499)
    assert verdict is Verdict.FAILED and "0.001 m nearer to its goal" in message
    verdict, message = at(0.2)
    assert verdict is Verdict.SUCCESS
    assert message.startswith(
        "it walks, but it went 0.3 m nearer to its goal, of 0.5 m"
    )
    assert at(0.05)[1].startswith("reached 2 s; 0.05 m from its goal")
    assert at(0.5, speed=0.0)[0] is Verdict.SUCCESS


def test_who_does_not_go_as_fast_as_asked_did_not():
    """Without a goal a speed and a turn are the reference."""
    ahead = Control(MONOPOD, speed=0.5, duration=2.0)
    assert judged(ahead, {"forward_m": 0.4})[0] is Verdict.FAILED
    assert "but it went 0.7 m ahead, of 1 m" in judged(ahead, {"forward_m": 0.7})[1]
    assert judged(ahead, {"forward_m": 1.4})[1].startswith("reached")
    turning = Control(MONOPOD, turn=0.5, duration=2.0)
    verdict, message = judged(turning, {"turned_deg": -20.0})
    assert verdict is Verdict.FAILED and "turned by -20 of 57.3 deg" in message


def test_who_should_stand_and_drifts_did_not_stand():
    """But for who is pushed, who may step aside."""
    still, pushed = Control(MONOPOD), Control(MONOPOD, pushes=(Push(9.0, 1.0),))
    assert judged(still, {"sideways_m": 1.2})[0] is Verdict.FAILED
    verdict, message = judged(pushed, {"sideways_m": 1.2})
    assert verdict is Verdict.SUCCESS
    assert message.startswith("it stands, but it drifts by 1.2 m; reached 2 s")


def test_a_large_tilt_is_said():
    verdict, message = judged(Control(MONOPOD), {}, tilt=np.radians(30))
    assert verdict is Verdict.SUCCESS and "but it tilts by 30 degrees" in message
    assert judged(Control(MONOPOD), {}, tilt=np.radians(53))[0] is Verdict.FAILED


def test_solves_without_a_sound_plan_are_said():
    verdict, message = judged(Control(MONOPOD), {"solve_failures": 30})
    assert verdict is Verdict.SUCCESS
    assert "but 30% of its solves found no sound plan" in message
    assert "sound" not in judged(Control(MONOPOD), {"solve_failures": 10})[1]


def test_who_fell_before_the_simulation_failed_has_fallen():
    fell = {"fell": True, "fell_at_s": 1.22}
    end = RunEnd(Verdict.FAILED, "the simulation failed", 1.5, 1.0, 100)
    verdict, message = judged(Control(MONOPOD, speed=0.4), fell, end)
    assert verdict is Verdict.FAILED
    said = "it fell at 1.2 s; then the simulation failed; try a lower speed"
    assert message.startswith(said)
    assert judged(Control(MONOPOD), {}, end)[1] == "the simulation failed"


@pytest.mark.parametrize(
    "asked, advice",
    [
        (
            {"speed": 0.4, "controller": GAINS},
            "try feedback by servos or a lower speed",
        ),
        ({"speed": 0.4}, "try a lower speed"),
        ({"speed": 0.0, "controller": GAINS}, "try feedback by servos"),
        ({"speed": 0.0}, "solved at 100 Hz in the median"),
    ],
)
def test_who_fell_hears_what_may_help(asked, advice):
    fell = {"fell": True, "fell_at_s": 1.22}
    verdict, message = judged(Control(MONOPOD, **asked), fell)
    assert verdict is Verdict.FAILED
    assert message.startswith(f"it fell at 1.2 s; {advice}")


@pytest.mark.long
def test_a_micro_robot_trots_without_a_plan():
    """HAMR, 12 mm high, by the weights and clocks of all robots. Of 0.1 m/s, which it
    would be asked for by its size, it makes less than half."""
    problem = Control("hamr", gait="trot", goal=(0.05, 0.0), speed=0.05, duration=0.5)
    own = Mpc(period=4e-3, delay=0.0, iterations=6)
    problem = replace(problem, plant=Rigid(time_step=5e-4), controller=own)
    run = first_that_holds(problem)
    assert run.ok, run.message
    assert 0.015 < run.metrics["forward_m"] < 0.03
    assert run.metrics["tilt_max_deg"] < 15


def test_sliding_actuators_are_weighed_by_their_levers(monkeypatch):
    """HAMR's piezos by weight times how much faster its feet are than they."""
    monkeypatch.setenv("DRAKEBOTS_COMPILE", "0")  # nothing is solved
    run = Run(Control("hamr", controller=Mpc(delay=0.0)))
    robot, q = run.own, run.reference.q
    cost = default_cost(robot, run.reference, run.height)
    context = robot.plant.CreateDefaultContext()
    robot.plant.SetPositions(context, q)
    weight = robot.plant.CalcTotalMass(context) * 9.81
    motor = robot.plant.GetJointActuatorByName("FLqsact")
    place = motor.joint().velocity_start()
    # The joints of this leg by Newton, with the motor a little further.
    step = 1e-6
    base = list(run.reference.axes.values())
    free = [i for i in range(len(q)) if i not in base and i != place]
    driven = [
        robot.plant.get_joint_actuator(i).joint().velocity_start()
        for i in robot.plant.GetJointActuatorIndices()
    ]
    free = [i for i in free if i not in driven]
    moved = q.copy()
    moved[place] += step
    for _ in range(5):
        robot.plant.SetPositions(context, moved)
        c, C = robot.closure.evaluate(context)
        moved[free] -= np.linalg.lstsq(C[:, free], c, rcond=None)[0]
    robot.plant.SetPositions(context, moved)
    ahead = robot.feet_positions(context)
    robot.plant.SetPositions(context, q)
    lever = np.linalg.norm(ahead - robot.feet_positions(context), axis=1).max() / step
    expected = WEIGHTS["effort"] / (weight * lever) ** 2
    assert cost.effort[motor.input_start()] == pytest.approx(expected, rel=1e-3)
    assert cost.position[place] == pytest.approx(WEIGHTS["joints"] / run.height**2)


def test_a_run_that_is_cut_short_is_not_judged_by_its_way():
    asked = {"speed": 0.5, "duration": 2.0, "time_limit": 1e-6}
    cut = control(Control(MONOPOD, controller=Mpc(delay=0.0), **asked))
    assert cut.verdict is Verdict.TIME_LIMIT, cut.message
    assert "distance missed [1]" not in cut.metrics["judged"]


def test_of_a_controller_that_solves_nothing_no_rate_is_told():
    law = Law("limp", lambda time, q, v: Command(np.zeros(2)))
    run = control(Control(MONOPOD, duration=0.02), controller=lambda run: law)
    assert run.metrics["solves"] == 0 and "Hz" not in run.message
