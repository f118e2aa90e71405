"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.frame.collisions import Collisions, SkinGround, link_contact
    from drakebots.skin.frame.contact import PatchContact, patch_points
    from drakebots.skin.frame.coupled import (
        CoupledFrame,
        FrameSolution,
        ReducedSystem,
        as_vector,
        coupled_frame,
    )
    from drakebots.skin.frame.driven import DrivenSkeleton, feet
    from drakebots.skin.frame.glue import (
        BETWEEN,
        Glue,
        glue_by_radius,
        glue_midside,
        glue_vertices,
    )
    from drakebots.skin.frame.references import (
        condense,
        solve_multipliers,
        solve_right_sides,
    )
    from drakebots.skin.frame.skeleton import (
        Servo,
        glue_points,
        glue_wrenches,
        moved_positions,
        skeleton_frame,
        torque_map,
    )
    from drakebots.skin.frame.start import LinkWeights, rigid_fit
    from drakebots.skin.frame.stepper import CoupledResult, CoupledState, CoupledStepper

__all__, __getattr__, __dir__ = lazy_face(__name__)
