"""The loop of controlled robots: what happens when, and how runs end."""

from __future__ import annotations

import multiprocessing
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import xarray as xr

from drakebots.control import Command, ControlRun, Law, MpcLog, Push
from drakebots.control.remote import serve
from drakebots.core.errors import NoSolution
from drakebots.core.run import Verdict
from drakebots.multibody import judged


class Cart:
    """A mass of 1 kg on a line that takes forces, in steps of 10 ms."""

    time_step = 0.01

    def __init__(self):
        self.x, self.v = 0.0, 0.0

    def state(self):
        return np.array([self.x]), np.array([self.v])

    def advance(self, command, forces=()):
        if abs(command.efforts[0]) > 100:
            raise NoSolution("too strong")
        force = command.efforts[0] + sum(f[0] for f in forces)
        self.v += self.time_step * force
        self.x += self.time_step * self.v


class Planner(Law):
    """Commands the number of its updates; they are noted with their states."""

    def __init__(self, period):
        super().__init__("planner", lambda t, q, v: Command(np.array([self.count])))
        self.period, self.log, self.count, self.seen = period, MpcLog(), 0.0, []

    def update(self, time, q, v):
        self.count += 1.0
        self.seen.append((time, q[0]))


class Run(ControlRun):
    """Stores times and states."""

    kind = "legged.mpc"

    def __init__(self, controller, falls_at=np.inf, **problem):
        given = {"duration": 0.1, "log_period": 0.02, "time_limit": None}
        self.problem = SimpleNamespace(**given | problem)
        self.plant, self.controller, self.falls_at = Cart(), controller, falls_at
        self.kept = []

    def keep(self, time, *, last):
        self.kept.append((time, self.plant.x, last))

    def fall(self, time):
        return "fell over" if time > self.falls_at else ""

    def dataset(self):
        times = [time for time, _, _ in self.kept]
        return xr.Dataset(coords={"time": ("time", times, {"units": "s"})})

    def metrics(self, data):
        return {}

    def findings(self, data, figures):
        return []

    def verdict(self, figures, findings):
        return judged(self.end, findings)

    def origin(self, data):
        return {"model": "cart", "residuals": {}, "provenance": {}}


def push(force):
    return Law("push", lambda t, q, v: Command(np.array([force])))


def test_samples_are_taken_at_their_period_and_at_the_end():
    run = Run(push(1.0), duration=0.09)
    result = run.simulate()
    assert result.ok and result.message == "reached 0.09 s"
    times, x, last = zip(*run.kept)
    np.testing.assert_allclose(times, [0, 0.02, 0.04, 0.06, 0.08, 0.09])
    n = np.round(np.array(times) / 0.01)
    np.testing.assert_allclose(x, 1e-4 * n * (n + 1) / 2, atol=1e-15)
    assert last == (False,) * 5 + (True,)


def test_an_update_acts_from_the_next_step_on():
    """As in a diagram: the step that begins at t is commanded by what was known."""
    run = Run(Planner(0.02), duration=0.04)
    run.simulate()
    np.testing.assert_allclose([t for t, _ in run.controller.seen], [0.0, 0.02])
    # Forces 0, 1, 1, 2 N.
    assert run.plant.v == pytest.approx(0.04)
    assert run.controller.seen[1][1] == pytest.approx(1e-4)


def test_updates_between_steps_see_the_state_after_the_step_before():
    run = Run(Planner(0.015), duration=0.06)
    run.simulate()
    times, places = zip(*run.controller.seen)
    np.testing.assert_allclose(times, [0.0, 0.015, 0.03, 0.045])
    # At 0.015 s after two steps, 0 and 1 N.
    assert places[1] == pytest.approx(1e-4)


def test_pushes_act_on_the_plant():
    run = Run(push(0.0), pushes=(Push(2.0, 0.03, 0.02, 0.0),))
    run.simulate()
    assert run.plant.v == pytest.approx(0.04)


@pytest.mark.parametrize(("begin", "duration"), [(0.03, 0.004), (0.034, 0.017)])
def test_pushes_give_their_impulse_whatever_the_steps(begin, duration):
    """Shorter than a step of 10 ms, or across parts of steps: F t, no more, no less."""
    run = Run(push(0.0), pushes=(Push(2.0, begin, duration, 0.0),))
    run.simulate()
    assert run.plant.v == pytest.approx(2.0 * duration)


def test_a_fall_ends_the_run_with_a_last_sample():
    run = Run(push(1.0), falls_at=0.045)
    result = run.simulate()
    assert result.verdict is Verdict.FAILED
    assert result.message == "fell over at 0.05 s"
    assert run.fell == (pytest.approx(0.05), "fell over")
    assert run.kept[-1][0] == pytest.approx(0.05) and run.kept[-1][2]


def test_a_plant_without_an_answer_ends_the_run():
    result = Run(push(200.0)).simulate()
    assert result.verdict is Verdict.FAILED and result.message == "too strong"


def test_a_state_that_diverges_ends_the_run():
    result = Run(push(np.nan)).simulate(success="never")
    assert result.verdict is Verdict.FAILED and "diverged" in result.message


def test_a_run_that_is_cut_short_keeps_its_samples():
    run = Run(push(1.0), time_limit=1e-9, log_period=0.01)
    assert run.simulate().verdict is Verdict.TIME_LIMIT
    assert len(run.kept) == 2


# --- in a process of its own ---


def obeying(first: str):
    """A controller whose plans are the orders that it was given."""

    def replanned(held, time, q, v):
        orders = own.reference.orders
        return SimpleNamespace(at=lambda _: orders)

    reference = SimpleNamespace(orders=first)
    own = SimpleNamespace(reference=reference, replanned=replanned, servos=False)
    return own


def test_a_robot_that_is_told_to_go_stands_first():
    """The plan from nothing is for the orders of the reference, at each start."""
    here, there = multiprocessing.Pipe()
    here.send((f"{__name__}:obeying", "stand"))
    x, plans = np.zeros(2), []
    for time, fresh in enumerate((True, False, False, True, False)):
        here.send((time, x, x, f"go {time}", fresh))
    thread = threading.Thread(target=serve, args=(there,))
    thread.start()
    plans = [here.recv()[0] for _ in range(5)]
    here.close()
    thread.join()
    assert plans == ["stand", "go 1", "go 2", "stand", "go 4"]
