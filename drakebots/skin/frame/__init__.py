"""The coupled time step: skeleton and skin in one linear solve.

:class:`Glue` fixes vertices of the skin to links, :class:`CoupledStepper` steps both in
time, and :class:`Collisions`, :class:`PatchContact` and :class:`Servo` act on them:

    stepper = CoupledStepper(plant, model, glue, 5e-3)
    result = stepper.step(stepper.start(), servo=Servo(40.0, 1.0, targets))

Names with "frame" mean the linear equations of one time step, the paper's frame.
:mod:`drakebots.skin.frame.coupled` assembles them, :class:`ReducedSystem` condenses
them to the joints, and :func:`condense` makes them affine maps of torques and contact
forces for planners.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.frame.collisions import Collisions, SkinGround, link_contact
    from drakebots.skin.frame.coupled import (
        CoupledFrame,
        FrameSolution,
        ReducedSystem,
        as_vector,
        condense,
    )
    from drakebots.skin.frame.glue import (
        Glue,
        glue_by_radius,
        glue_midside,
        glue_stiffness,
        glue_vertices,
        rest_tangent,
    )
    from drakebots.skin.frame.laws import (
        PatchContact,
        Patches,
        PatchLaw,
        patch_points,
    )
    from drakebots.skin.frame.skeleton import (
        Servo,
        glue_points,
        glue_wrenches,
        torque_map,
    )
    from drakebots.skin.frame.start import LinkWeights, rigid_fit
    from drakebots.skin.frame.stepper import CoupledResult, CoupledState, CoupledStepper

__all__, __getattr__, __dir__ = lazy_face(__name__)
