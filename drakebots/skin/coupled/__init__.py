"""The coupled time step: skeleton and skin in one linear solve.

:class:`Glue` fixes vertices of the skin to links, :class:`CoupledStepper` steps both in
time, and :class:`Collisions`, :class:`PatchContact` and :class:`Servo` act on them:

    stepper = CoupledStepper(plant, model, glue, 5e-3)
    result = stepper.step(stepper.start(), servo=Servo(40.0, 1.0, targets))

The paper calls a time step a frame. :mod:`drakebots.skin.coupled.equations` assembles
its linear equations, and :class:`ReducedSystem` condenses them to the joints.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.skin.coupled.collisions import Collisions, SkinGround, link_contact
    from drakebots.skin.coupled.driven import CoupledResult, SceneForces
    from drakebots.skin.coupled.equations import (
        ReducedSystem,
        StepEquations,
        StepSolution,
        as_vector,
    )
    from drakebots.skin.coupled.glue import (
        Glue,
        glue_by_radius,
        glue_midside,
        glue_stiffness,
        glue_vertices,
        rest_tangent,
    )
    from drakebots.skin.coupled.laws import (
        PatchContact,
        Patches,
        PatchLaw,
        patch_points,
    )
    from drakebots.skin.coupled.scene import Scene, scene_of
    from drakebots.skin.coupled.skeleton import (
        Servo,
        actuated_joints,
        glue_points,
        glue_wrenches,
        torque_map,
        whole_com,
    )
    from drakebots.skin.coupled.stepper import (
        CoupledState,
        CoupledStepper,
        blended,
        link_weights,
        rigid_fit,
    )
    from drakebots.skin.coupled.touch import SpringSystem

__all__, __getattr__, __dir__ = lazy_face(__name__)
