"""drakebots: legged robots that ordinary simulators leave out, on Drake.

from drakebots import hamr, plot, record

    result = hamr.simulate(hamr.Simulation(gait="trot", frequency=10))
    plot(result, "trot.png")
    record(result).save("trot.html")
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.core.errors import (
        DrakebotsError,
        FileProblem,
        InvalidInput,
        ModelProblem,
        NoSolution,
        ResultProblem,
        UnknownName,
    )
    from drakebots.formats import load
    from drakebots.model import Model, available_models, package_map
    from drakebots.multibody import Ground, Robot, build_robot
    from drakebots.results import Result, load_result
    from drakebots.robots import (
        gecko,
        hamr,
        plan,
        plot,
        quads,
        record,
        simulate,
        stored_plan,
        track,
        voxels,
    )
    from drakebots.sweeps import sweep

__version__ = "0.2.0"

__all__, __getattr__, __dir__ = lazy_face(__name__)
