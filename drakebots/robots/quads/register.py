"""Registration of skinned robots: their tasks, and the kinds of their results."""

import os
from pathlib import Path

from drakebots.model import (
    ENDINGS,
    find_model,
    is_identified,
    package_root,
    skin_path,
)
from drakebots.robots import Kind, Robot, Task


def names_skinned(word: str) -> bool:
    """Whether a word of a command line names a model with a skin."""
    if is_identified(Path(word)):
        path = skin_path(find_model(word))
    elif word.lower().endswith(ENDINGS):
        path = skin_path(Path(word))
    else:
        name = word.replace("-", "_")
        if not name.isidentifier():
            return False
        path = package_root() / name / f"{name}.skin.yaml"
    return os.path.isfile(path)


_QUADS = __name__.rpartition(".")[0]
_SKIN = "drakebots.view.skin:record_skin"
_PLOT = f"{_QUADS}:plot_plan"

_EXPORT = Task(
    f"{_QUADS}:ServoTable",
    f"{_QUADS}:export_servos",
    "write the angles that a servo board plays",
    "drakebots export plan.nc --servos servo.csv",
    file="servos",
)
_TRACK = Task(
    f"{_QUADS}:Tracking",
    f"{_QUADS}:track",
    "track a plan of a skinned robot, on compliant ground",
    "drakebots track plan.nc -o track.nc",
)

ENTRIES = (
    Robot(
        "skinned",
        "a skeleton in an elastic skin: beetle, monster, lizard, cow, your own",
        simulate=Task(
            "drakebots.skin:SkinSimulation",
            "drakebots.skin:simulate_skinned",
            "simulate a robot in an elastic skin whose servos follow a motion",
            "drakebots simulate skinned-leg --motion sine --duration 2 -o run.nc",
        ),
        mpc=Task(
            f"{_QUADS}:Control",
            f"{_QUADS}:control",
            "trot in an elastic skin under contact-implicit control, pushed",
            "drakebots mpc monster --speed 0.2 --push 20N@1s -o run.nc",
        ),
        live=Task(
            f"{_QUADS}:Drive",
            f"{_QUADS}:drive",
            "move the servos of a robot in its skin in the browser",
            "drakebots live skinned-leg",
        ),
        plan=Task(
            f"{_QUADS}:Problem",
            f"{_QUADS}:plan",
            "plan a motion of a quad-robot in an elastic skin",
            "drakebots plan beetle --motion walk -o plan.nc",
        ),
        matches=f"{__name__}:names_skinned",
    ),
    Kind("skin.simulation", "drakebots.plots:plot_skin", _SKIN),
    Kind("skin.live", "drakebots.plots:plot_skin", _SKIN),
    *(
        Kind(f"quads.{name}", _PLOT, _SKIN, track=_TRACK, export=_EXPORT)
        for name in ("plan", "space_time")
    ),
    Kind("quads.frames", _PLOT, _SKIN),
    Kind("quads.control", "drakebots.plots:plot_motion", _SKIN),
    Kind("quads.track", f"{_QUADS}:plot_track", _SKIN, export=_EXPORT),
)
"""Entries of the registry."""
