"""Voxel robots: the paper's walking robot, and the kinematics of any voxel lattice.

    result = simulate(Simulation(gait="forward", cycles=3))      # a walk in Drake
    result = plan(Problem([Target("foot", "x", 5e-3)]))          # actuators that do it
    result = plan(SearchProblem(walks=60))                       # a gait for travel

A plan answers for one pose, so there is nothing to track. Source: Tebyani, Spaeth,
Cramer, Teodorescu, "A Geometric Kinematic Model for Flexible Voxel-Based Robots"
(2022); docs/voxel.md.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.robots.voxels.gait import Gait, paper_gait, read_gait
    from drakebots.robots.voxels.live import Drive, Moved, drive
    from drakebots.robots.voxels.model import MODEL, Feet
    from drakebots.robots.voxels.plan import Problem, Target, plan
    from drakebots.robots.voxels.plots import (
        draw_markers,
        plot_actuator_plan,
        plot_gait_search,
        plot_walk,
        record_voxel,
    )
    from drakebots.robots.voxels.search import SearchProblem, search_gait
    from drakebots.robots.voxels.simulate import Simulation, build, simulate

__all__, __getattr__, __dir__ = lazy_face(__name__)
