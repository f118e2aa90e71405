"""Registration of HAMR: its tasks, and the kinds of its results."""

from drakebots.robots import Kind, Robot, Task

_HAMR = __name__.rpartition(".")[0]
_MOTION = ("drakebots.plots:plot_motion", "drakebots.view:record_motion")

ENTRIES = (
    Robot(
        "hamr",
        "HAMR-VI, a microrobot of 1.5 g with 24 closed flexure loops",
        simulate=Task(
            f"{_HAMR}:Simulation",
            f"{_HAMR}:simulate",
            "simulate HAMR with a gait",
            "drakebots simulate hamr --gait trot --frequency 10 --surface card "
            "--cycles 15 -o run.nc",
        ),
        live=Task(
            f"{_HAMR}:Drive",
            f"{_HAMR}:drive",
            "change HAMR's gait in the browser while it runs, in slow motion",
            "drakebots live hamr --gait trot --surface card",
        ),
        plan=Task(
            f"{_HAMR}:GaitProblem",
            f"{_HAMR}:plan",
            "plan a gait or the jump of HAMR by contact-implicit optimization",
            "drakebots plan hamr --gait trot --frequency 10 --surface card -o plan.nc",
            also=(f"{_HAMR}:JumpProblem",),
            pictures=(("convergence", "drakebots.plots:plot_convergence"),),
        ),
        stored_plan=f"{_HAMR}:stored_plan",
    ),
    Kind("hamr.simulation", *_MOTION),
    Kind("hamr.live", *_MOTION),
    Kind(
        "hamr.plan",
        *_MOTION,
        track=Task(
            f"{_HAMR}:Tracking",
            f"{_HAMR}:track",
            "execute a plan of HAMR under its leg estimator and controller",
            "drakebots track plan.nc --cycles 15 -o run.nc",
        ),
        refine=Task(
            f"{_HAMR}:Refinement",
            f"{_HAMR}:refine",
            "refine a gait of HAMR: plan again from executed runs, learn between them",
            "drakebots refine plan.nc --rounds 4 -o refined.nc",
        ),
        export=Task(
            f"{_HAMR}:VoltageTable",
            f"{_HAMR}:export_voltages",
            "write the drive voltages of a plan of HAMR",
            "drakebots export plan.nc --voltages v.csv",
            file="voltages",
        ),
    ),
    Kind("hamr.track", f"{_HAMR}:plot_track", _MOTION[1]),
)
"""Entries of the registry."""
