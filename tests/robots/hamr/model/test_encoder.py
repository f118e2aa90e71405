"""The encoders: the circuit's inverse, and the system beside a moving plant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from pydrake.systems.analysis import Simulator

from drakebots import build_robot, load
from drakebots.core.units import MM_G_MS
from drakebots.robots.hamr import Simulation, build
from drakebots.robots.hamr.model import ACTUATORS, Encoder, hamr_encoder
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
            u_act = fine.settle(u_act, u_sig, velocity(time) / factor)
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
    assert CIRCUIT.settle(u, u_sig, current) == pytest.approx(slow, abs=1e-4)


@pytest.mark.parametrize("speed", [-0.2, -1e-3, 0.0, 0.05])
def test_constant_velocity_is_exact(speed):
    # Even while the drive steps from sample to sample.
    found = measure(
        lambda time: np.full(8, speed),
        lambda time: 112.5 + 100 * np.sin(500 * time),
        samples=40,
    )
    assert found == pytest.approx(np.full((40, 8), speed), abs=1e-12)


def test_sine_within_five_percent():
    # 100 Hz, as the legs ring: measured 3.9 % of the amplitude.
    amplitude, omega = 0.05, 2 * np.pi * 100
    found = measure(
        lambda time: np.full(8, amplitude * np.sin(omega * time)),
        lambda time: np.full(8, 112.5),
        samples=100,
    )
    time = CIRCUIT.period * np.arange(1, 101)
    error = np.abs(found - amplitude * np.sin(omega * time)[:, None])
    assert error.max() < 0.05 * amplitude


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
