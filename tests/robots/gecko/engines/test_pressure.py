"""Low-level control: pressures follow, saturate, and do not wind up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydrake.systems.analysis import Simulator
from pydrake.systems.framework import DiagramBuilder
from pydrake.systems.primitives import Gain, LogVectorOutput, PassThrough

from drakebots.core.errors import InvalidInput
from drakebots.robots.gecko.engines.controllers import Gains, PressureControl
from drakebots.robots.gecko.model import Calibration, saturate

CURVE = Calibration()


class Bench:
    """One limb that follows its pressure, times `give`: 1 is a free limb, and times
    `share`, by which its own calibration differs from the controller's."""

    def __init__(self, gains=Gains(), give=1.0, share=1.0):
        builder = DiagramBuilder()
        one_sided, rest = np.array([True]), np.zeros(1)
        bent = lambda alpha: share * alpha  # noqa: E731
        control = PressureControl(CURVE, gains, one_sided, rest, bent)
        control = builder.AddSystem(control)
        limb = builder.AddSystem(Gain(give, 1))
        wish = builder.AddSystem(PassThrough(1))
        free = control.GetOutputPort("free_bending")
        desired = control.GetInputPort("desired_bending")
        builder.Connect(wish.get_output_port(), desired)
        builder.Connect(free, limb.get_input_port())
        builder.Connect(limb.get_output_port(), control.GetInputPort("bending"))
        ports = {
            "alpha": limb.get_output_port(),
            "p": control.GetOutputPort("pressure"),
            "u": control.GetOutputPort("valve"),
            "p_ref": control.GetOutputPort("desired_pressure"),
        }
        self.logs = {
            k: LogVectorOutput(p, builder, publish_period=0.005)
            for k, p in ports.items()
        }
        builder.ExportInput(wish.get_input_port(), "wish")
        self.diagram = builder.Build()
        self.simulator = Simulator(self.diagram)
        self.context = self.simulator.get_mutable_context()

    def ask(self, alpha, seconds):
        self.diagram.get_input_port().FixValue(self.context, [alpha])
        self.simulator.AdvanceTo(self.context.get_time() + seconds)

    def log(self, name):
        log = self.logs[name].FindLog(self.context)
        return log.sample_times(), log.data()[0]


@given(st.floats(-1.9, 1.9))
def test_curve_and_its_inverse(alpha):
    assert CURVE.bending(CURVE.pressure(alpha)) == pytest.approx(alpha, abs=1e-9)


def test_curve_is_odd_increasing_and_ends_at_the_limit():
    alpha = np.linspace(0, CURVE.angle, 50)
    p = CURVE.pressure(alpha)
    assert (np.diff(p) > 0).all() and p[0] == 0
    assert p[-1] == pytest.approx(1.1e5)
    np.testing.assert_allclose(CURVE.pressure(-alpha), -p)
    assert CURVE.pressure(9.0) == pytest.approx(1.1e5)
    straight = Calibration(curvature=0.0)
    np.testing.assert_allclose(straight.bending(straight.pressure(alpha)), alpha)


def test_step_settles():
    bench = Bench()
    bench.ask(1.0, 5.0)
    times, alpha = bench.log("alpha")
    assert abs(alpha[-1] - 1.0) < 5e-3
    assert (abs(alpha[times > 0.6] - 1.0) < 0.02).all()
    assert alpha.max() < 1.1
    assert alpha[times < 0.05].max() < 0.9  # chambers take time to fill
    _, u = bench.log("u")
    assert np.abs(u).max() <= 1.0


def test_a_loaded_limb_is_corrected_as_far_as_allowed():
    free_of_error, stuck = Bench(give=0.95), Bench(give=0.2)
    free_of_error.ask(1.0, 8.0)
    assert free_of_error.log("alpha")[1][-1] == pytest.approx(1.0, abs=0.01)
    stuck.ask(1.0, 8.0)
    wish = CURVE.pressure(1.0) + Gains().correction
    assert stuck.log("p_ref")[1].max() <= wish + 1e-6
    assert stuck.log("p_ref")[1][-1] == pytest.approx(wish)


def test_pressure_saturates():
    bench = Bench()
    bench.ask(3.0, 3.0)
    _, p = bench.log("p")
    assert p.max() <= 1.1e5 + 1e-6
    assert p[-1] == pytest.approx(1.1e5, rel=2e-3)
    assert bench.log("alpha")[1][-1] == pytest.approx(CURVE.angle, rel=0.01)


@pytest.mark.parametrize("give", [1.0, 0.6])
def test_no_wind_up(give):
    # After a long time at the limit it comes down as fast as after a short one.
    falls = []
    for wait in (2.0, 20.0):
        bench = Bench(give=give)
        bench.ask(3.0, wait)
        bench.ask(0.5, 3.0)
        times, alpha = bench.log("alpha")
        falls.append(times[np.flatnonzero(alpha > 0.55)[-1]] - wait)
    assert falls[1] == pytest.approx(falls[0], abs=0.03)
    assert falls[1] < 0.8


def test_one_chamber_makes_no_vacuum():
    bench = Bench()
    bench.ask(-1.0, 1.0)
    assert bench.log("p_ref")[1].min() == 0.0


def test_saturate():
    alpha = np.radians([150.0, -5.0, -130.0, 90.0, 0.0])
    found = saturate(alpha)
    np.testing.assert_allclose(np.degrees(found), [110.0, -5.0, -110.0, 90.0, 0.0])
    assert saturate(np.zeros((3, 5))).shape == (3, 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Calibration(limit=0.0),
        lambda: Calibration(angle=np.nan),
        lambda: Calibration(curvature=1.0),
        lambda: Gains(angle_p=-1.0),
    ],
)
def test_bad_values_are_refused(make):
    with pytest.raises(InvalidInput) as caught:
        make()
    assert "\n" not in str(caught.value)


def test_a_limb_of_another_calibration():
    """Without feedback it bends by its share; with it, the pressure rises within the
    correction's limit until the limb is where it should be."""
    open_loop = Bench(Gains(angle_p=0.0, angle_i=0.0), share=0.9)
    open_loop.ask(1.0, 3.0)
    assert open_loop.log("alpha")[1][-1] == pytest.approx(0.9, rel=1e-3)
    closed = Bench(share=0.9)
    closed.ask(1.0, 6.0)
    assert closed.log("alpha")[1][-1] == pytest.approx(1.0, rel=1e-2)
