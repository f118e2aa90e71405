"""HAMR-VI in the browser: frequency, amplitudes and phases of its gait, while it runs.

drive(Drive(headless=True, script="commands.csv"))
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import numpy as np
from pydrake.systems.analysis import Simulator

from drakebots.core.checks import one_of
from drakebots.core.errors import InvalidInput
from drakebots.core.fields import checked
from drakebots.core.run import Progress
from drakebots.core.stages import timed
from drakebots.live import Live, SimulatedPart, Slider, run_live
from drakebots.results import Result
from drakebots.robots.hamr.gaits import gait_names
from drakebots.robots.hamr.model import BIAS, LEGS, OnSurface
from drakebots.robots.hamr.simulate import Simulation, build

FASTEST = 80.0
"""Largest frequency [Hz]."""


@checked("live", kw_only=True)
class Drive(Live, OnSurface):
    """A gait that is changed while it runs, on a ground of some friction."""

    gait: Annotated[str, one_of("gait", gait_names())] = "trot"
    """Name of the gait to begin with."""

    def __post_init__(self):
        Live.__post_init__(self)
        OnSurface.__post_init__(self)
        if not self._simulation().waveform().periodic:
            raise InvalidInput(f"live: {self.gait} does not repeat; choose a gait")

    def _simulation(self) -> Simulation:
        own = {n: getattr(self, n) for n in ("gait", "surface")}
        return Simulation(log_period=1.0, **own)


class Gait(SimulatedPart):
    """The gait of a live HAMR-VI; slow, because it is small and fast."""

    kind, pace, period, done = "hamr.live", 0.1, 1e-3, "walked"

    def __init__(self, live: Drive):
        built = build(live._simulation())
        simulator = Simulator(built.diagram)
        built.place(simulator.get_mutable_context())
        self._source = built.diagram.GetSubsystemByName("gait_source")
        super().__init__(simulator, built.robot, live)
        wave, half = self._source.waveform, BIAS / 2
        share = np.mod(-wave.phase / (2 * np.pi), 1.0)
        self.controls = [
            self._slider("frequency", 1, FASTEST, wave.frequency, "Hz", "SW"),
            self._slider("swing", 0, half, wave.swing, "V", "DA"),
            self._slider("lift", 0, half, wave.lift, "V", "QE"),
            *(
                self._slider(f"phase {leg}", 0, 1, float(at), "cycles")
                for leg, at in zip(LEGS, share)
            ),
        ]

    def _slider(self, name, low, high, value, unit, keys=("", "")) -> Slider:
        act = partial(self._change, name)
        return Slider(name, low, high, value, unit=unit, keys=keys, act=act)

    def _change(self, name: str, value: float) -> None:
        wave, what = self._source.waveform, name.partition(" ")[0]
        if what == "frequency":
            # Legs go on from where they are.
            slower, since = wave.frequency - value, self._source.since(self.root)
            self._shift = self._shift + 2 * np.pi * slower * since
        if what != "phase":
            wave = replace(wave, **{what: value})
        shares = [self.panel.values[f"phase {leg}"] for leg in LEGS]
        phase = self._shift - 2 * np.pi * np.array(shares)
        self._source.waveform = replace(wave, phase=phase)

    _shift = 0.0

    def restart(self) -> None:
        super().restart()
        self._source.start, self._shift = self.root.get_time(), 0.0
        self._change("phase", 0.0)


@timed("load")
def drive(
    problem: Drive = Drive(duration=1.0), *, progress: Progress | None = None
) -> Result:
    """Walks until Ctrl-C, the end of its script or of `duration`.

    Returns:
        The motion with all commands, kind "hamr.live".
    """
    return run_live(problem, Gait(problem), progress)
