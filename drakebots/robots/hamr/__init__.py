"""HAMR-VI, the Harvard Ambulatory MicroRobot: 1.5 g, closed flexure loops, piezo drive.

    from drakebots import hamr

    walk = hamr.simulate(hamr.Simulation(gait="trot", frequency=10, surface="card"))
    plan = hamr.plan(hamr.GaitProblem(frequency=10, surface="card"))
    plan = hamr.stored_plan("10hz_card")  # or one that came with drakebots
    run = hamr.track(hamr.Tracking(plan, cycles=15))
    hamr.export_voltages(plan, "gait.csv", rate=2500)
    hamr.plot_track(run, "run.png")

`model` holds the robot with its actuators and encoders, `gaits` the open-loop gaits,
`simulate` runs them; `plan` optimizes gaits and jumps through contact, and `track`
executes a plan with feedback. `refine` plans again from executions, and learns between
them. A plan is passed on as a `reference`: states and voltages over time.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.hamr.gaits import gait_names, make_waveform
    from drakebots.robots.hamr.live import Drive, Gait, drive
    from drakebots.robots.hamr.model import MODEL, Plates
    from drakebots.robots.hamr.plan import (
        GaitProblem,
        GaitWeights,
        JumpProblem,
        WarmStart,
        plan,
        store_plan,
        stored_plan,
        stored_plans,
    )
    from drakebots.robots.hamr.plots import plot_track
    from drakebots.robots.hamr.reference import Reference, VoltageTable, export_voltages
    from drakebots.robots.hamr.refine import Refinement, refine
    from drakebots.robots.hamr.simulate import (
        GaitSource,
        Simulation,
        build,
        hamr_ground,
        simulate,
    )
    from drakebots.robots.hamr.track import Gains, Mismatch, Noise, Tracking, track

__all__, __getattr__, __dir__ = lazy_face(__name__)
