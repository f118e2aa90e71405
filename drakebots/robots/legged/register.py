"""Registration of legged models: their tasks, and the kinds of their results."""

from drakebots.robots import Kind, Robot, Task

_LEGGED = __name__.rpartition(".")[0]
_MOTION = ("drakebots.plots:plot_motion", "drakebots.view:record_motion")

ENTRIES = (
    Robot(
        "any",
        "any model",
        simulate=Task(
            f"{_LEGGED}:Simulation",
            f"{_LEGGED}:simulate",
            "simulate any model on the ground, held by servos or left to itself",
            "drakebots simulate robot.urdf --duration 2 -o run.nc",
        ),
        mpc=Task(
            f"{_LEGGED}:Control",
            f"{_LEGGED}:control",
            "control a legged robot that is pushed, by contact-implicit control",
            "drakebots mpc mini_cheetah --gait trot --goal 1,0 --push 50N@1s "
            "--html a.html",
        ),
        live=Task(
            f"{_LEGGED}:Drive",
            f"{_LEGGED}:drive",
            "drive, push and pose any model in the browser",
            "drakebots live mini_cheetah",
        ),
        plan=Task(
            "drakebots.trajopt.locomotion:LocomotionProblem",
            "drakebots.trajopt.locomotion:plan_locomotion",
            "plan a motion of any legged model by contact-implicit optimization",
        ),
    ),
    Kind("legged.simulation", *_MOTION),
    Kind(
        "locomotion.plan",
        *_MOTION,
        track=Task(
            f"{_LEGGED}:Tracking",
            f"{_LEGGED}:track",
            "execute a plan of any legged robot with feedback",
            "drakebots track plan.nc --cycles 5 -o run.nc",
        ),
        refine=Task(
            f"{_LEGGED}:Refinement",
            f"{_LEGGED}:refine",
            "refine a walk of any legged robot: plan again for what executions lack",
            "drakebots refine plan.nc --feedback Servos -o refined.nc",
        ),
    ),
    Kind("legged.track", *_MOTION),
    Kind("legged.live", *_MOTION),
    Kind("legged.mpc", *_MOTION),
)
"""Entries of the registry."""
