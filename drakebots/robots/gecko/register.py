"""Registration of the gecko: its tasks, and the kinds of its results."""

from drakebots.robots import Kind, Robot, Task

_GECKO = __name__.rpartition(".")[0]

ENTRIES = (
    Robot(
        "gecko",
        "a pneumatic gecko with suction feet",
        simulate=Task(
            f"{_GECKO}:Simulation",
            f"{_GECKO}:simulate",
            "walk the gecko to its targets in a closed loop",
            'drakebots simulate gecko --targets "65cm,0 65cm,65cm" '
            "--epsilon 10cm -o run.nc",
        ),
        live=Task(
            f"{_GECKO}:Drive",
            f"{_GECKO}:drive",
            "move the gecko's target and an obstacle in the browser while it walks",
            "drakebots live gecko",
        ),
        plan=Task(
            f"{_GECKO}:Problem",
            f"{_GECKO}:plan",
            "simulate the gecko's velocity space and fit a polynomial to it",
            "drakebots plan gecko -o space.nc",
        ),
    ),
    Kind("gecko.live", f"{_GECKO}:plot_course", f"{_GECKO}:record_gecko"),
    Kind("gecko.simulation", f"{_GECKO}:plot_course", f"{_GECKO}:record_gecko"),
    Kind("gecko.velocity_space", f"{_GECKO}:plot_velocity_space"),
)
"""Entries of the registry."""
