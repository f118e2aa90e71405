"""The robots that come with drakebots, and the kinds of their results."""

from __future__ import annotations

from drakebots.robots.registry import Kind, Robot, Task, register

_HAMR, _GECKO = "drakebots.robots.hamr", "drakebots.robots.gecko"
_VOXELS, _QUADS = "drakebots.robots.voxels", "drakebots.robots.quads"
_MOTION = "drakebots.plots:plot_motion"
_RECORD = "drakebots.view:record_motion"
_SKIN = "drakebots.view.skin:record_skin"

ROBOTS = (
    Robot(
        "hamr",
        "HAMR-VI, a microrobot of 1.5 g with 24 closed flexure loops",
        simulate=Task(
            f"{_HAMR}:Simulation",
            f"{_HAMR}:simulate",
            "simulate HAMR with a gait",
            options="drakebots.cli.hamr:SIMULATE",
        ),
        plan=Task(
            f"{_HAMR}:GaitProblem",
            f"{_HAMR}:plan",
            "plan a gait or the jump of HAMR by contact-implicit optimization",
            options="drakebots.cli.hamr:PLAN",
            also=(f"{_HAMR}:JumpProblem",),
        ),
    ),
    Robot(
        "gecko",
        "a pneumatic gecko with suction feet",
        simulate=Task(
            f"{_GECKO}:Simulation",
            f"{_GECKO}:simulate",
            "walk the gecko to its targets in a closed loop",
            options="drakebots.cli.gecko:GECKO_SIMULATE",
        ),
        plan=Task(
            f"{_GECKO}:VelocitySpace",
            f"{_GECKO}:plan",
            "simulate the gecko's velocity space and fit a polynomial to it",
            options="drakebots.cli.gecko:GECKO_PLAN",
        ),
    ),
    Robot(
        "voxel",
        "a walking robot of ten voxels",
        simulate=Task(
            f"{_VOXELS}:Simulation",
            f"{_VOXELS}:simulate",
            "walk the voxel robot with a gait",
            options="drakebots.cli.voxels:VOXEL_SIMULATE",
        ),
        plan=Task(
            f"{_VOXELS}:Problem",
            f"{_VOXELS}:plan",
            "find actuator displacements of the voxel robot for requested node motions",
            options="drakebots.cli.voxels:VOXEL_PLAN",
        ),
    ),
    Robot(
        "lattice",
        "a voxel lattice of any shape, from a file",
        plan=Task(
            f"{_VOXELS}:Problem",
            f"{_VOXELS}:plan",
            "find actuators of a lattice for requested node motions",
            options="drakebots.cli.voxels:LATTICE_PLAN",
        ),
        matches="drakebots.cli.inputs:is_lattice",
    ),
    Robot(
        "skinned",
        "a skeleton in an elastic skin: beetle, monster, lizard, cow, your own",
        simulate=Task(
            "drakebots.skin:SkinSimulation",
            "drakebots.skin:simulate_skinned",
            "simulate a robot in an elastic skin whose servos follow a motion",
            options="drakebots.cli.skin:SKIN_SIMULATE",
        ),
        plan=Task(
            f"{_QUADS}:Problem",
            f"{_QUADS}:plan",
            "plan a motion of a quad-robot in an elastic skin",
            options="drakebots.cli.quads:QUAD_PLAN",
        ),
        matches="drakebots.cli.inputs:names_skinned",
    ),
)

KINDS = (
    Kind("passive.simulation", _MOTION, _RECORD),
    Kind("locomotion.plan", _MOTION, _RECORD),
    Kind("hamr.simulation", _MOTION, _RECORD),
    Kind(
        "hamr.plan",
        _MOTION,
        _RECORD,
        track=Task(
            f"{_HAMR}:Tracking",
            f"{_HAMR}:track",
            "execute a plan of HAMR under its leg estimator and controller",
            "drakebots track plan.nc --cycles 15 -o run.nc",
        ),
        export="drakebots.cli.hamr:EXPORT",
    ),
    Kind("hamr.track", f"{_HAMR}:plot_track", _RECORD),
    Kind("gecko.simulation", f"{_GECKO}:plot_course", f"{_GECKO}:record_gecko"),
    Kind("gecko.velocity_space", f"{_GECKO}:plot_velocity_space"),
    Kind("voxels.simulation", f"{_VOXELS}:plot_walk", f"{_VOXELS}:record_voxel"),
    Kind(
        "voxels.plan",
        f"{_VOXELS}:plot_actuator_plan",
        "drakebots.view.lattice:record_nodes",
    ),
    Kind("voxels.gait_search", f"{_VOXELS}:plot_gait_search"),
    Kind("skin.simulation", "drakebots.plots:plot_skin", _SKIN),
    *(
        Kind(
            f"quads.{name}",
            f"{_QUADS}:plot_plan",
            _SKIN,
            track=Task(
                f"{_QUADS}:Tracking",
                f"{_QUADS}:track",
                "execute a plan of a skinned robot open loop, on compliant ground",
                options="drakebots.cli.quads:QUAD_TRACK",
                also=(f"{_QUADS}:SapTracking",),
            ),
            export="drakebots.cli.quads:QUAD_EXPORT",
        )
        for name in ("plan", "space_time")
    ),
    Kind("quads.frames", f"{_QUADS}:plot_plan", _SKIN),
    *(
        Kind(
            f"quads.{name}",
            f"{_QUADS}:plot_track",
            _SKIN,
            export="drakebots.cli.quads:QUAD_EXPORT",
        )
        for name in ("track", "sap_track")
    ),
)

ANY_SIMULATE = Task(
    "drakebots.robots.passive:PassiveSimulation",
    "drakebots.robots.passive:simulate_passive",
    "simulate any model without control: it falls, stands, or swings",
)
ANY_PLAN = Task(
    "drakebots.trajopt.locomotion:LocomotionProblem",
    "drakebots.trajopt.locomotion:plan_locomotion",
    "plan a motion of any legged model by contact-implicit optimization",
)

ANY = Robot("any", "any model", simulate=ANY_SIMULATE, plan=ANY_PLAN)

register(*ROBOTS, ANY, *KINDS)
