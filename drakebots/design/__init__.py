"""Design of skinned quad-robots: from a body or a surface to a robot that can be built.

Source: "Computational Design of Skinned Quad-Robots", sections 3 and 6.

    design = design_robot(table1_problem("beetle"))
    write_design(design, "out/beetle")
    fabricate(design, "out/beetle/fabrication")

A :class:`DesignProblem` has a body or a surface, a template of the skeleton and
:class:`SkinSettings`; a :class:`Design` has the skeleton, the skin's mesh and its glue.
The rooms inside are geometry, skeleton, embed (fits a template into a surface), skin,
bracing and fabrication.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.fabrication import fabricate
    from drakebots.design.file import read_design
    from drakebots.design.fit import FitSettings
    from drakebots.design.optimize import (
        REDUCTION,
        Improved,
        Planner,
        TorqueModel,
        optimize,
        rms,
    )
    from drakebots.design.pictures import (
        draw_cut,
        draw_fabrication,
        draw_fit,
        draw_improved,
        draw_mesh,
        draw_skeleton,
        draw_skin,
        draw_surface,
    )
    from drakebots.design.pipeline import STAGES, SURFACE_SKIN, design_robot
    from drakebots.design.problem import (
        Design,
        DesignProblem,
        params_text,
        write_design,
    )
    from drakebots.design.skin import SkinSettings
    from drakebots.design.table1 import (
        JOINTS,
        redesigned,
        smooth,
        table1_problem,
        table1_template,
    )
    from drakebots.design.variables import DesignVariable, SkinResponse

__all__, __getattr__, __dir__ = lazy_face(__name__)
