"""Planted parameters are found again; what data does not determine is said."""

from __future__ import annotations

import csv
from dataclasses import replace

import casadi as ca
import matplotlib.image
import numpy as np
import pytest
from scipy.integrate import solve_ivp

from drakebots.cli import main
from drakebots.core.errors import (
    DrakebotsWarning,
    FileProblem,
    InvalidInput,
    NoSolution,
    UnknownName,
)
from drakebots.core.files import write_csv
from drakebots.core.run import Verdict
from drakebots.core.units import GRAVITY
from drakebots.formats import load
from drakebots.identify import Identification, identify, read_measured, write_parameters
from drakebots.identify.fit import Fit
from drakebots.multibody import Twin, build_robot
from drakebots.results import load_result
from drakebots.skin.file import load_skinned
from tests.helpers.scripts import load_script
from tests.helpers.swings import EFFORT, SAMPLE, pendulum_in, swing

bench = load_script("identify")


@pytest.fixture
def pendulum(tmp_path):
    return pendulum_in(tmp_path)


def asked(model, data, *fit, **options):
    return Identification(model, data, fit, time_step=2.5e-3, **options)


def value(found, name):
    return float(found.data.value.sel(parameter=name))


# --- the numbers of a model as symbols ---


def test_values_of_the_twin_are_those_of_a_model_with_other_numbers(tmp_path):
    path = bench.write_leg(tmp_path)
    numbers = {"mass:body": 0.7, "damping:crank": 0.3, "stiffness:crank": 2.0}
    symbols = {name: ca.SX.sym("x") for name in numbers}
    twin = Twin(build_robot(load(path), base="fixed").plant, symbols)
    other = Twin(build_robot(load(path, parameters=numbers), base="fixed").plant)
    q, v, a = (ca.SX.sym(name, 5) for name in "qva")
    x = ca.vertcat(*symbols.values())
    point = np.random.default_rng(0).normal(size=(3, 5))
    mine = ca.Function("f", [q, v, a, x], [twin.inverse_dynamics(q, v, a)])
    theirs = ca.Function("f", [q, v, a], [other.inverse_dynamics(q, v, a)])
    expected = np.array(theirs(*point))
    np.testing.assert_allclose(
        mine(*point, list(numbers.values())), expected, atol=1e-12
    )
    L, M = ca.Function("L", [q, v, x], [twin.lagrangian(q, v)]), other.lagrangian(q, v)
    M = ca.Function("M", [q, v], [M])
    both = L(*point[:2], list(numbers.values())), M(*point[:2])
    np.testing.assert_allclose(float(both[0]), float(both[1]), rtol=1e-12)


def test_a_links_inertia_goes_with_its_mass(pendulum):
    heavy = load(pendulum.path, parameters={"mass:thigh": 2.0})
    bodies = [
        build_robot(m, base="fixed").plant.GetBodyByName("thigh")
        for m in (pendulum, heavy)
    ]
    light, heavy = (
        body.default_rotational_inertia().CopyToFullMatrix3() for body in bodies
    )
    np.testing.assert_allclose(heavy, 2 * light)


ARM = """<model name="{}"><link name="arm"><pose relative_to="hip"/><inertial>
<pose>0 0 -0.3 0 0 0</pose><mass>0.5</mass><inertia><ixx>0.01</ixx><iyy>0.01</iyy>
<izz>0.01</izz><ixy>0</ixy><ixz>0</ixz><iyz>0</iyz></inertia></inertial></link>
<joint name="hip" type="revolute"><pose relative_to="__model__"/><parent>world</parent>
<child>arm</child><axis><xyz>0 1 0</xyz><dynamics><damping>0.2</damping></dynamics>
<limit><effort>0</effort></limit></axis>
</joint></model>"""


@pytest.mark.long
def test_two_models_that_share_names_are_told_apart(tmp_path):
    """Two pendulums of one kind, whose motions are integrated by scipy."""
    path = tmp_path / "two.sdf"
    arms = "".join(map(ARM.format, ("left", "right")))
    path.write_text(f'<sdf version="1.9"><world name="w">{arms}</world></sdf>')
    t, columns = np.arange(0, 2, 0.01), {}
    for name, damping, mass in (("left", 0.05, 0.5), ("right", 0.2, 1.0)):

        def rates(_, x, d=damping, m=mass):
            torque = -m * GRAVITY * 0.3 * np.sin(x[0]) - d * x[1]
            return x[1], torque / (m * (0.02 + 0.3**2))

        swung = solve_ivp(rates, (0, 2), (0.5, 0.0), t_eval=t, rtol=1e-10, atol=1e-12)
        columns[f"position.{name}_hip [rad]"] = swung.y[0]
    heads, rows = ["time [s]", *columns], np.column_stack([t, *columns.values()])
    data = write_csv(tmp_path / "run.csv", heads, rows)
    names = "damping:left::hip", "mass:right::arm"
    found = identify(asked(load(path), data, *names))
    assert value(found, names[0]) == pytest.approx(0.05, rel=1e-2)
    assert value(found, names[1]) == pytest.approx(1.0, rel=1e-2)


def test_a_stiffness_of_a_name_that_two_models_share_is_refused(tmp_path):
    springs = "<dynamics><spring_stiffness>1</spring_stiffness>"
    arms = "".join(map(ARM.replace("<dynamics>", springs).format, ("left", "right")))
    path = tmp_path / "two.sdf"
    path.write_text(f'<sdf version="1.9"><world name="w">{arms}</world></sdf>')
    with pytest.raises(InvalidInput, match="several parts"):
        load(path, parameters={"stiffness:hip": 2.0})


# --- gradients ---


def short_leg(tmp_path):
    """A fit of the looped leg on the ground, of a tenth of a second."""
    kind, path = bench.KINDS["loop"], bench.write_leg(tmp_path)
    heads, rows = kind.run(path, bench.nominal_values(path, kind), 0, 0.05)
    write_csv(tmp_path / "run.csv", heads, rows)
    problem = Identification(path, tmp_path / "run.csv", kind.fit, segment=0.025)
    return Fit(problem, read_measured(problem.data))


def differences(fit, columns):
    """Columns of the Jacobian by central differences."""
    n, shape = len(fit.x), fit.states.shape

    def residuals(z):
        states = z[n:].reshape(shape)
        return fit.residuals(z[:n], states, fit.run(z[:n], states))

    z = np.concatenate([fit.x, fit.states.ravel()])
    for j in columns:
        e = np.eye(len(z))[j] * 1e-6
        yield (residuals(z + e) - residuals(z - e)) / 2e-6


@pytest.mark.long
def test_derivatives_through_loops_and_contact_are_exact(tmp_path):
    fit = short_leg(tmp_path)
    fit.x = fit.x * [0.9, 1.1, 1.2, 0.8]
    runs = fit.run(fit.x, fit.states)
    assert max(solved[:, 5 + 2].max() for _, solved, *_ in runs) > 1.0  # it touches
    J = fit.jacobian(fit.x, fit.states, runs)
    columns = [*range(4), 4, 6, 9, 11]
    for j, expected in zip(columns, differences(fit, columns)):
        np.testing.assert_allclose(
            J[:, j], expected, atol=1e-4 * np.abs(expected).max()
        )


@pytest.mark.parametrize("effort", [EFFORT, 3.0])
def test_derivatives_in_a_servo_and_its_delay_are_exact(pendulum, tmp_path, effort):
    """On both sides of its limit of effort too."""
    pendulum = load(pendulum.path, actuate="all", effort=effort)
    t = np.arange(0, 0.1001, SAMPLE)
    rows = np.c_[t, 0.1 * np.sin(20 * t), 0.3 * np.sin(25 * t + 0.3)]
    heads = ["time [s]", "position.hip [rad]", "target.hip [rad]"]
    data = write_csv(tmp_path / "run.csv", heads, rows)
    servo = {"stiffness": 30.0, "damping": 0.4, "delay": 0.0123}
    names = ("servo.stiffness", "servo.damping", "servo.delay")
    fit = Fit(asked(pendulum, data, *names, servo=servo), read_measured(data))
    J = fit.jacobian(fit.x, fit.states, fit.run(fit.x, fit.states))
    for j, expected in enumerate(differences(fit, range(5))):
        np.testing.assert_allclose(
            J[:, j], expected, atol=1e-5 * np.abs(expected).max()
        )


def test_time_steps_are_no_longer_than_asked(pendulum, tmp_path):
    """Samples of 3.5 ms are two steps each where 2.5 ms are the most."""
    t = 3.5e-3 * np.arange(30)
    heads = ["time [s]", "position.hip [rad]", "torque.hip [N m]"]
    data = write_csv(tmp_path / "run.csv", heads, np.c_[t, np.sin(t), 0 * t])
    fit = Fit(asked(pendulum, data, "damping:hip"), read_measured(data))
    assert fit.steps == pytest.approx(np.full(58, 1.75e-3))


# --- skins ---


@pytest.fixture(scope="module")
def skinned_run(tmp_path_factory):
    """0.06 s of the skinned leg, its skin and servos softer, with little noise."""
    kind, folder = bench.KINDS["skin"], tmp_path_factory.mktemp("skin")
    path = kind.write(folder)
    nominal = bench.nominal_values(path, kind)
    moduli = "youngs_modulus:0", "youngs_modulus:1", "servo.stiffness"
    heads, rows = kind.run(path, {name: 0.8 * nominal[name] for name in moduli}, 0)
    rows, rng = rows[:61], np.random.default_rng(0)
    rows[:, 1:5] += 1e-3 * rows[:, 1:5].std(axis=0) * rng.normal(size=(61, 4))
    return write_csv(folder / "run.csv", heads, rows)


@pytest.mark.long
def test_the_modulus_of_a_skin_is_found_and_counts(skinned_run, tmp_path):
    """The run's own program and steps, and a thousandth of noise."""
    names = "youngs_modulus:*~", "servo.stiffness"
    found = identify(Identification("skinned_leg", skinned_run, names))
    assert found.ok, found.message
    assert value(found, "youngs_modulus:*~") == pytest.approx(0.8, rel=5e-3)
    assert value(found, "servo.stiffness") == pytest.approx(0.8 * 40, rel=5e-3)
    path = write_parameters(found, tmp_path / "found.yaml")
    robot = load_skinned(path)
    assert robot.skin.servos.stiffness == pytest.approx(32, rel=5e-3)
    for material in robot.fem.materials:
        assert material.youngs_modulus == pytest.approx(0.8 * 7e5, rel=5e-3)
    words = ["simulate", str(path), "--duration", "10ms", "-o", str(tmp_path / "r.nc")]
    assert main(words) == 0
    assert load_result(tmp_path / "r.nc").kind == "skin.simulation"


def test_what_a_skin_does_not_have_is_refused(skinned_run):
    for name in ("friction", "youngs_modulus:7", "mass:thigh"):
        with pytest.raises(UnknownName, match=r"servo.stiffness"):
            identify(Identification("skinned_leg", skinned_run, (name,)))
    with pytest.raises(UnknownName, match="youngs_modulus:7"):
        load_skinned(load("skinned_leg", parameters={"youngs_modulus:7": 1e6}))
    with pytest.raises(UnknownName, match="youngs_modulus:0"):
        load("mini_cheetah", parameters={"youngs_modulus:0": 1e6})
    late = Identification(
        "skinned_leg", skinned_run, ("servo.stiffness",), servo={"delay": 0.02}
    )
    with pytest.raises(UnknownName, match="'delay'"):
        identify(late)


# --- planted parameters ---


def test_planted_values_are_found_within_their_intervals(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", mass_thigh=1.2, damping_hip=0.13)
    found = identify(asked(pendulum, data, "mass:thigh", "damping:hip"))
    assert found.ok, found.message
    for name, planted in (("mass:thigh", 1.2), ("damping:hip", 0.13)):
        row = found.data.sel(parameter=name)
        assert abs(value(found, name) / planted - 1) < 0.02
        assert float(row.low) < planted < float(row.high)
    assert found.residuals["gap between segments [noise]"] < 1e-2


@pytest.mark.long
@pytest.mark.parametrize("stiffness, share", [(30.0, 0.4), (5.0, 0.0)])
def test_a_servo_that_reaches_its_limit_is_found(pendulum, tmp_path, stiffness, share):
    """Beyond it the torque does not follow the target."""
    gains = (stiffness, 0.6)
    data = swing(pendulum, tmp_path / "run.csv", noise=1e-3, servo=gains)
    read = read_measured(data).columns
    off = read["target.hip"] - read["position.hip"]
    assert (np.mean(stiffness * np.abs(off) > EFFORT) > share) == (share > 0)
    names, first = ("servo.stiffness", "servo.damping"), 0.8 * np.array(gains)
    servo = dict(zip(("stiffness", "damping"), first))
    problem = Identification(pendulum, data, names, time_step=5e-4, servo=servo)
    found = identify(problem)
    assert found.ok, found.message
    for name, planted in zip(names, gains):
        assert value(found, name) == pytest.approx(planted, rel=0.02)


def test_samples_and_signals_may_be_missing(pendulum, tmp_path):
    path = swing(pendulum, tmp_path / "run.csv", noise=1e-4, mass_thigh=1.2)
    rows = list(csv.reader(path.read_text().splitlines()))
    for row in rows[20:45:2]:
        row[1] = ""
    rows[50][1] = "nan"
    path.write_text("\n".join(map(",".join, rows)))
    found = identify(asked(pendulum, path, "mass:thigh"))
    assert found.metrics["samples"] == len(rows) - 1 - 14
    assert value(found, "mass:thigh") == pytest.approx(1.2, rel=5e-3)


@pytest.mark.slow
def test_intervals_hold_the_planted_value_about_as_often_as_they_say(
    pendulum, tmp_path
):
    held = []
    for seed in range(20):
        data = swing(pendulum, tmp_path / "run.csv", seed=seed, mass_thigh=1.1)
        found = identify(asked(pendulum, data, "mass:thigh"))
        row = found.data.sel(parameter="mass:thigh")
        held.append(float(row.low) < 1.1 < float(row.high))
    assert sum(held) >= 16  # fewer with probability 0.95: three in 1000


@pytest.mark.long
def test_noise_free_data_of_the_same_steps_give_the_planted_value(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", noise=0)
    names = "mass:thigh", "damping:hip"
    fit = Fit(asked(pendulum, data, *names), read_measured(data))
    x, states = np.array([1.2, 0.9]), fit.states.copy()
    for k in range(1, len(states)):
        states[k] = fit.run(x, states)[k - 1].states[-1]
    rows = np.genfromtxt(data, delimiter=",", skip_header=1)
    rows[:, 1] = fit.predicted(fit.run(x, states))[:, 0]
    write_csv(data, ["time [s]", "position.hip [rad]", "torque.hip [N m]"], rows)
    found = identify(asked(pendulum, data, *names))
    assert value(found, "mass:thigh") == pytest.approx(1.2, rel=1e-6)
    assert value(found, "damping:hip") == pytest.approx(0.09, rel=1e-5)


def test_intervals_count_the_steps_and_the_lines_between_inputs(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", noise=1e-6, mass_thigh=1.2)
    found = identify(asked(pendulum, data, "mass:thigh", "damping:hip"))
    for name, planted in (("mass:thigh", 1.2), ("damping:hip", 0.1)):
        row = found.data.sel(parameter=name)
        assert float(row.low) < planted < float(row.high)
        assert float(row.steps) > 0.5 * float(row.high - row.value)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["loop", "limb"])
def test_a_robot_of_the_benchmark_is_found_to_one_percent(kind, tmp_path):
    found, planted = bench.case(kind, 1, tmp_path)
    assert found.ok, found.message
    assert bench.judge(found, planted)[0] < 0.01


# --- what the data does not determine ---


def test_what_the_data_does_not_determine_is_named_and_has_no_number(
    pendulum, tmp_path
):
    data = swing(pendulum, tmp_path / "run.csv")
    names = ("damping:hip", "mass:brick")
    with pytest.warns(DrakebotsWarning, match=r"does not determine mass:brick: fix it"):
        found = identify(asked(pendulum, data, *names))
    assert np.isnan(value(found, "mass:brick"))
    assert value(found, "damping:hip") == pytest.approx(0.1, rel=0.03)
    assert list(found.metrics["undetermined"]) == ["mass:brick"]
    assert "mass:brick" not in found.metrics["parameters"]


def test_a_fit_that_does_not_explain_the_data_is_no_success(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", mass_thigh=1.2)
    table = np.genfromtxt(data, delimiter=",", skip_header=1)
    table[:, 2] *= 0.5  # a torque sensor that shows half
    write_csv(data, ["time [s]", "position.hip [rad]", "torque.hip [N m]"], table)
    found = identify(asked(pendulum, data, "damping:hip"))
    assert found.verdict is Verdict.FAILED
    assert "does not explain the data" in found.message


def test_a_prior_determines_what_the_data_does_not(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv")
    found = identify(asked(pendulum, data, "mass:brick", prior={"mass:brick": 0.1}))
    row = found.data.sel(parameter="mass:brick")
    assert value(found, "mass:brick") == pytest.approx(2.0, rel=1e-6)
    # Two standard deviations of 10 % of 2 kg.
    assert float(row.high - row.value) == pytest.approx(0.4, rel=0.05)


# --- files in and out ---


@pytest.mark.long
def test_the_command_writes_a_model_that_other_commands_take(
    pendulum, tmp_path, capsys
):
    data = swing(pendulum, tmp_path / "run.csv", mass_thigh=1.2)
    out, picture = tmp_path / "found.yaml", tmp_path / "found.png"
    words = ["identify", str(pendulum.path), "--data", str(data), "--fit", "mass:thigh"]
    words += ["--time-step", "2.5ms", "--actuate", "all", "--effort", "20"]
    assert main([*words, "-o", str(out), "--plot", str(picture)]) == 0
    assert matplotlib.image.imread(picture).std() > 0.01
    assert main(["show", str(out)]) == 0
    again = load(out)
    mass = again.parameters["mass:thigh"]
    assert mass == pytest.approx(1.2, rel=0.02)
    assert again.summary.mass == pytest.approx(mass + 0.3 + 2.0)
    assert "mass:thigh" in capsys.readouterr().out


def test_results_are_measurements_too(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", noise=0)
    found = identify(asked(pendulum, data, "damping:hip"))
    found.save(tmp_path / "found.nc")
    read = read_measured(tmp_path / "found.nc")
    np.testing.assert_allclose(read.time, found.data.time.values)
    column = next(c for n, c in read.columns.items() if n.startswith("measured."))
    np.testing.assert_allclose(column, found.data.measured.values[:, 0])


# --- bad input, and interruption ---


def test_bad_input_is_named(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", duration=0.1)
    with pytest.raises(UnknownName, match=r"mass:thgh.*did you mean 'mass:thigh'"):
        identify(asked(pendulum, data, "mass:thgh"))
    with pytest.raises(InvalidInput, match="asked for twice"):
        identify(asked(pendulum, data, "mass:thigh", "mass:t*"))
    with pytest.raises(UnknownName, match="prior"):
        identify(asked(pendulum, data, "mass:thigh", prior={"damping:hip": 0.1}))
    with pytest.raises(InvalidInput, match="prior must be > 0"):
        asked(pendulum, data, "mass:thigh", prior={"mass:thigh": 0.0})
    text = data.read_text()
    for old, new, message in (
        ("torque.hip", "current.hip", "neither torque.hip nor target.hip"),
        ("position.hip", "angle.hip", "unknown signal"),
        ("time [s]", "t [s]", "no column `time"),
        ("0.01,", "0.001,", "sort the rows by time"),
        ("[rad]", "[furlong]", "furlong"),
        ("0.01,", "0.01,abc,", "values for 3 columns"),
        ("0.01,", "0.01,1e200,0\n0.012,", "1e.200 is no measurement"),
    ):
        data.write_text(text.replace(old, new, 1))
        with pytest.raises((InvalidInput, UnknownName, FileProblem), match=message):
            identify(asked(pendulum, data, "mass:thigh"))
    rows = [[t, 0, 0] for t in (0, 1000, 2000)]
    write_csv(data, ["time [s]", "position.hip", "torque.hip"], rows)
    with pytest.raises(InvalidInput, match="take a larger time_step"):
        identify(Identification(pendulum, data, ["mass:thigh"], time_step=1e-9))
    kept = load(pendulum.path, parameters={"servo.delay": 0.01, "friction": 0.4})
    assert kept.parameters == {"servo.delay": 0.01, "friction": 0.4}
    with pytest.raises(UnknownName, match="parameter"):
        load(pendulum.path, parameters={"mass:nothing": 1.0})
    with pytest.raises(InvalidInput, match="mass:thigh must be >= 0"):
        load(pendulum.path, parameters={"mass:thigh": -1.0})


@pytest.mark.parametrize(
    "heads, words",
    [
        ("position.hip [rad],position.hip [deg],torque.hip", "each name once"),
        ("position.hip (deg),x,torque.hip", "each name once"),
        ("position.hip [deg or mm],x,torque.hip", "each name once"),
        ("position.hip [ms],x,torque.hip", "position.hip cannot.*'ms'.*like 'rad'"),
        ("velocity.hip [deg],x,torque.hip", "velocity.hip cannot.*like 'rad/s'"),
        ("position.hip,x,torque.hip [N]", "torque.hip cannot.*'N'.*like 'N m'"),
        ("position.hip,x,target.hip [mm]", "target.hip cannot.*like 'rad'"),
    ],
)
def test_columns_that_mean_something_else_are_refused(pendulum, tmp_path, heads, words):
    """They were taken as numbers, the last of two of one name."""
    path = tmp_path / "run.csv"
    lines = [f"{k / 100},1,2,0" for k in range(5)]
    path.write_text("\n".join([f"time [s],{heads}", *lines]))
    with pytest.raises((InvalidInput, FileProblem), match=words):
        Fit(asked(pendulum, path, "mass:thigh"), read_measured(path))


@pytest.mark.parametrize("time", ["time [m]", "time [Hz]", "time [deg]"])
def test_time_is_in_a_unit_of_time(tmp_path, time):
    path = tmp_path / "run.csv"
    path.write_text(f"{time},position.hip\n0,1\n1,2\n2,3\n")
    with pytest.raises(FileProblem, match="no column `time"):
        read_measured(path)


def test_a_table_of_a_spreadsheet_is_read(tmp_path):
    """With the mark of UTF-8 at its start, times in ms and columns in any order."""
    text = (
        "\ufefftorque.hip [N mm],position.hip [deg],time [ms]\n1,180,0\n1,0,1\n1,0,2\n"
    )
    (tmp_path / "run.csv").write_text(text, encoding="utf-8")
    data = read_measured(tmp_path / "run.csv")
    np.testing.assert_allclose(data.time, [0, 1e-3, 2e-3])
    assert data.columns["position.hip"][0] == pytest.approx(np.pi)
    assert data.columns["torque.hip"][0] == pytest.approx(1e-3)


def test_what_was_reached_is_kept(pendulum, tmp_path):
    data = swing(pendulum, tmp_path / "run.csv", duration=0.2)
    problem = replace(asked(pendulum, data, "mass:thigh"), time_limit=1e-3)
    found = identify(problem)
    assert found.verdict is Verdict.TIME_LIMIT
    assert np.isfinite(found.data.predicted.values).all()

    def press(stage, done, end):
        raise KeyboardInterrupt

    stopped = identify(asked(pendulum, data, "mass:thigh"), progress=press)
    assert stopped.verdict is Verdict.INTERRUPTED
    written = write_parameters(stopped, tmp_path / "so_far.yaml")
    assert "# NO SUCCESS (interrupted): " in written.read_text()
    assert load(written).parameters.keys() == {"mass:thigh"}


def test_a_fit_that_cannot_begin_is_no_answer(pendulum, tmp_path, monkeypatch):
    """No number is compared with one that is none."""
    data = swing(pendulum, tmp_path / "run.csv", duration=0.2)
    fit = Fit(asked(pendulum, data, "mass:thigh"), read_measured(data))
    fit.states[0, 1] = np.nan
    monkeypatch.setattr("drakebots.identify.fit.Fit", lambda *_: fit)
    with pytest.raises(NoSolution, match="before its first step"):
        identify(asked(pendulum, data, "mass:thigh"))
