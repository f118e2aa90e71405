"""The encoders: the circuit's inverse, and the system beside a moving plant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator
from scipy.integrate import solve_ivp

from drakebots import build_robot, load
from drakebots.core.units import MM_G_MS
from drakebots.robots.hamr import Simulation, build
from drakebots.robots.hamr.model import ACTUATORS, Encoder, Plates, hamr_encoder
from drakebots.robots.hamr.model.piezo import RELAXATION
from drakebots.robots.hamr.simulate import run_dataset

CIRCUIT = hamr_encoder()
SUBSTEPS = 200
VOLTAGES = np.linspace(20, 200, 8)


def measure(velocity, drive, samples):
    """Estimates (samples, 8) [m/s] of velocities that move between samples."""
    fine = replace(CIRCUIT, period=CIRCUIT.period / SUBSTEPS)
    factor, u_act, estimates = CIRCUIT.velocity_per_current, np.zeros(8), []
    for k in range(samples):
        before, u_sig = u_act, drive(k * CIRCUIT.period)
        for j in range(SUBSTEPS):
            time = k * CIRCUIT.period + (j + 0.5) * fine.period
            u_act, _ = fine.settle(u_act, u_act, u_sig, velocity(time) / factor)
        estimates.append(factor * CIRCUIT.current(u_sig, u_act, before))
    return np.array(estimates)


def test_constants():
    # RSS 2018: X about 140 and 120, sampling at 2.5 kHz; the rest is ours.
    kinds = [name[-1] for name in ACTUATORS]
    expected = [{"s": 140.0, "l": 120.0}[kind] for kind in kinds]
    assert CIRCUIT.velocity_per_current.tolist() == expected
    assert CIRCUIT.period == pytest.approx(4e-4)
    assert CIRCUIT.conductance == pytest.approx(1e-4, rel=2e-3)


def test_settles_as_the_equation_says():
    # zeta C du/dt = (u_sig - u)/R_s - u/R - i_m, by small Euler steps.
    u, u_sig, current, steps = 20.0, 150.0, 3e-4, 100_000
    dt = CIRCUIT.period / steps
    slow = u
    for _ in range(steps):
        flow = (u_sig - slow) / CIRCUIT.shunt - slow / CIRCUIT.resistance - current
        slow += dt * flow / CIRCUIT.capacitance
    found, _ = CIRCUIT.settle(u, u, u_sig, current)
    assert found == pytest.approx(slow, abs=1e-4)


@pytest.mark.parametrize(
    "plates",
    [Plates(capacitance=1.2, resistance=0.8, current=0.9), Plates(late=0.2)],
    ids=["factors", "late"],
)
def test_other_plates_settle_as_their_equations_say(plates):
    # Both equations of `settle` by an adaptive solver, 30 samples under a drive.
    other, rate = replace(CIRCUIT, plates=plates), 2 * np.pi * RELAXATION
    full, true = plates.capacitance * CIRCUIT.capacitance, np.array([100.0, 95.0])
    u_act, late = true
    for k in range(30):
        u_sig, current = 112.5 + 80 * np.sin(0.1 * k), 3e-4 * np.cos(0.1 * k)

        def rates(_, x, u_sig=u_sig, current=current):
            u, slow = x
            flow = (u_sig - u) / CIRCUIT.shunt - plates.current * current
            flow -= u / (plates.resistance * CIRCUIT.resistance)
            flow -= plates.late * rate * full * (u - slow)
            return [flow / ((1 - plates.late) * full), rate * (u - slow)]

        how = {"method": "LSODA", "rtol": 1e-9, "atol": 1e-9}
        true = solve_ivp(rates, (0, CIRCUIT.period), true, **how).y[:, -1]
        u_act, late = other.settle(u_act, late, u_sig, current)
    # 1 mV is 0.1 uA, a thousandth of the current.
    assert u_act == pytest.approx(true[0], abs=1e-3)
    if plates.late:
        assert late == pytest.approx(true[1], abs=0.2)


def estimates(plates, drive, velocity=0.0, samples=500):
    """Estimates (samples, 8) [m/s] at a constant velocity [m/s] by a circuit whose
    plates are other than assumed; the drive's voltage is a function of the sample."""
    other, factor = replace(CIRCUIT, plates=plates), CIRCUIT.velocity_per_current
    u_act = late = drive(0) * np.ones(8)
    found = []
    for k in range(samples):
        before, u_sig = u_act, drive(k)
        u_act, late = other.settle(u_act, late, u_sig, velocity / factor)
        found.append(factor * CIRCUIT.current(u_sig, u_act, before))
    return np.array(found)


def test_wrong_resistance_is_a_constant_error():
    # dq/dt off by X u (1/R_true - 1/R) at a constant voltage u.
    volts, share = 150.0, 0.8
    found = estimates(Plates(resistance=share), lambda k: volts)[-1]
    leak = volts / CIRCUIT.resistance * (1 / share - 1)
    expected = CIRCUIT.velocity_per_current * leak
    assert found == pytest.approx(expected, rel=5e-3)
    # The same leak by its growth with the voltage, 1 + voltage/3 at 150 V.
    grown = estimates(Plates(voltage=3 * (1 / share - 1)), lambda k: volts)[-1]
    assert grown == pytest.approx(found, rel=5e-3)


def test_wrong_current_is_a_factor():
    found = estimates(Plates(current=1.1), lambda k: 112.5, velocity=0.05)[-1]
    assert found == pytest.approx(0.055, rel=1e-6)


def test_wrong_capacitance_is_over_within_a_held_sample():
    """R_s C is a sixth of a sample: what is left of the charging at its end is e^-5.3
    of the voltage's step, a tenth of what a derivative of the voltage would show."""
    omega = 2 * np.pi * 10 * CIRCUIT.period
    found = estimates(
        Plates(capacitance=1.2), lambda k: 112.5 + 100 * np.sin(omega * k)
    )
    unseen = 0.2 * CIRCUIT.capacitance * 2 * np.pi * 10 * 100
    error = np.abs(found[100:] / CIRCUIT.velocity_per_current).max()
    assert 0.05 * unseen < error < 0.15 * unseen


@pytest.mark.parametrize("frequency", [2, 10, 30])
def test_admittance_of_other_plates(frequency):
    """C(f) and R(f) of `Plates`: the plates' current over their voltage, under a sine
    in 30 steps a sample, by a fit of the last two cycles."""
    plates = Plates(capacitance=1.2, resistance=0.5, late=0.2)
    fine = replace(CIRCUIT, plates=plates, period=CIRCUIT.period / 30)
    omega = 2 * np.pi * frequency
    time = np.arange(0.25 + 2 / frequency, step=fine.period)
    u_act, late, rows = 112.5, 112.5, []
    for u_sig in 112.5 + 80 * np.sin(omega * (time + fine.period / 2)):
        before = u_act
        u_act, late = fine.settle(u_act, late, u_sig, 0.0)
        middle = (before + u_act) / 2
        rows.append((middle, (u_sig - middle) / fine.shunt))
    last = time > 0.25
    wave = np.column_stack([np.exp(1j * omega * time), np.ones(len(time))])[last]
    (voltage, current), _ = np.linalg.lstsq(wave, np.array(rows)[last], rcond=None)[0]
    share = frequency / RELAXATION
    whole = 1.2 * CIRCUIT.capacitance
    capacitance = whole * (0.8 + 0.2 / (1 + share**2))
    leak = 2 / CIRCUIT.resistance + whole * omega * 0.2 * share / (1 + share**2)
    admittance = current / voltage
    assert admittance.imag / omega == pytest.approx(capacitance, rel=0.01)
    assert admittance.real == pytest.approx(leak, rel=0.02)


@pytest.fixture(scope="module")
def run():
    """20 ms of HAMR, logged as often as the encoders sample."""
    built = build(Simulation(frequency=50, log_period=4e-4))
    simulator = Simulator(built.diagram)
    built.place(simulator.get_mutable_context())
    simulator.Initialize()
    simulator.AdvanceTo(20.0)
    return run_dataset(built, simulator.get_context())


def test_system_measures_the_plant(run):
    # What is held at a sample was measured from the velocity at the last one.
    measured, true = run.encoder_velocity.values, run.actuator_velocity.values
    assert np.abs(true).max(axis=0).min() > 1e-3
    assert measured[0].tolist() == [0] * 8
    assert measured[1:] == pytest.approx(true[:-1], abs=1e-9)


def resting(**noise):
    """The encoders of HAMR at rest under constant voltages, not yet run."""
    robot = build_robot(load("hamr"), scaling=MM_G_MS)
    plant, system = robot.plant, Encoder(robot.plant, robot.scaling, **noise)
    simulator = Simulator(system)
    context = simulator.get_mutable_context()
    system.GetInputPort("voltages").FixValue(context, VOLTAGES)
    state = plant.GetPositionsAndVelocities(plant.CreateDefaultContext())
    system.GetInputPort("state").FixValue(context, state)
    return simulator


def test_noise_repeats_with_its_seed():
    def measured(**noise):
        simulator, rows = resting(**noise), []
        velocity = simulator.get_system().GetOutputPort("velocity")
        for k in range(50):
            simulator.AdvanceTo((k + 0.5) * CIRCUIT.period / MM_G_MS.time)
            rows.append(velocity.Eval(simulator.get_context()).copy())
        return np.array(rows)

    noisy = measured(noise=1e-5, seed=3)
    assert np.array_equal(noisy, measured(noise=1e-5, seed=3))
    assert not np.array_equal(noisy, measured(noise=1e-5, seed=4))
    # In the estimate the deviation is X times that of the current.
    noise = (noisy - measured()) / CIRCUIT.velocity_per_current
    assert noise.std() == pytest.approx(1e-5, rel=0.15)


def test_system_simulates_other_plates():
    def measured(**options):
        simulator = resting(**options)
        simulator.AdvanceTo(8.0)
        velocity = simulator.get_system().GetOutputPort("velocity")
        return velocity.Eval(simulator.get_context())

    leak = VOLTAGES / CIRCUIT.resistance * (1 / 0.8 - 1)
    found = measured(plates=Plates(resistance=0.8))
    assert found == pytest.approx(CIRCUIT.velocity_per_current * leak, rel=5e-3)


def test_system_holds_the_plates_voltage():
    simulator = resting()
    simulator.AdvanceTo(8.0)
    system, context = simulator.get_system(), simulator.get_context()
    held = system.GetOutputPort("actuator_voltage").Eval(context)
    # At rest: a divider of R and R_s.
    divider = CIRCUIT.resistance / (CIRCUIT.resistance + CIRCUIT.shunt)
    assert held == pytest.approx(divider * VOLTAGES)
    still = system.GetOutputPort("velocity").Eval(context)
    assert still == pytest.approx(np.zeros(8), abs=1e-9)
