"""Designing skins and skeletons: shapes, shells, templates, parts."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.fabrication import fabricate
    from drakebots.design.file import read_design
    from drakebots.design.folder import SERVOS, write_compressed_mesh, write_design
    from drakebots.design.pictures import (
        draw_cut,
        draw_fabrication,
        draw_skeleton,
        draw_skin,
        draw_surface,
    )
    from drakebots.design.pipeline import STAGES, design_robot
    from drakebots.design.problem import Design, DesignProblem, SkinSettings
    from drakebots.design.resistance import joint_resistance, limb_skin, rest_stiffness
    from drakebots.design.robots import (
        JOINTS,
        VERTICES,
        WEIGHTS,
        smooth,
        table1_problem,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
