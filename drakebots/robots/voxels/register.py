"""Registration of the voxel robot and voxel lattices: tasks and kinds of results."""

from drakebots.robots import Kind, Robot, Task

_VOXELS = __name__.rpartition(".")[0]

_NODES = "drakebots.view.lattice:record_nodes"
_LIVE = Task(
    f"{_VOXELS}:Drive",
    f"{_VOXELS}:drive",
    "move a lattice's actuators in the browser by sliders",
    "drakebots live voxel",
)

ENTRIES = (
    Robot(
        "voxel",
        "a walking robot of ten voxels",
        simulate=Task(
            f"{_VOXELS}:Simulation",
            f"{_VOXELS}:simulate",
            "walk the voxel robot with a gait",
            "drakebots simulate voxel --gait forward --cycles 4 -o run.nc",
        ),
        live=_LIVE,
        plan=Task(
            f"{_VOXELS}:Problem",
            f"{_VOXELS}:plan",
            "find actuators of the voxel robot for node motions, or search a gait",
            "drakebots plan voxel --target foot:x=5mm",
            also=(f"{_VOXELS}:SearchProblem",),
        ),
    ),
    Robot(
        "lattice",
        "a voxel lattice of any shape, from a file",
        live=_LIVE,
        plan=Task(
            f"{_VOXELS}:Problem",
            f"{_VOXELS}:plan",
            "find actuators of a lattice for requested node motions",
            "drakebots plan lattice.json --target 1,3,4:x=5mm --actuator 2,3,1:z",
        ),
        matches="drakebots.lattice.shape:names_lattice",
    ),
    Kind("voxels.simulation", f"{_VOXELS}:plot_walk", f"{_VOXELS}:record_voxel"),
    Kind("voxels.plan", f"{_VOXELS}:plot_actuator_plan", _NODES),
    Kind("voxels.live", f"{_VOXELS}:plot_actuator_plan", _NODES),
    Kind("voxels.gait_search", f"{_VOXELS}:plot_gait_search"),
)
"""Entries of the registry."""
