"""Planes of motion: the kinematics of a voxel lattice, and how far to trust them.

A layer of voxels tilts in alternation when an actuator pushes one of its nodes. The
model is linear, x = J u, and holds for any lattice of voxels:

    lattice = block(2, 2, 2)
    model = PlanesOfMotion(lattice, [Control((2, 1, 1), "z")])
    model.displacements([5e-3])                  # of all nodes (N, 3) [m]

- :func:`inverse_kinematics` finds the controls for requested node motions,
  :func:`place_actuators` also the fewest actuators;
- :class:`ElasticPOM` adds the stiffness of all mechanisms and the actuators' forces;
- :func:`compare` holds both against the beam frame and says which model to use;
- :func:`calibrate` fits the gains of the planes to measured markers.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.lattice.pom.calibrate import (
        BodyFrame,
        Gains,
        body_frame,
        calibrate,
        length_factor,
        read_lengths,
        read_measurements,
    )
    from drakebots.lattice.pom.elastic import (
        HOLDS,
        Agreement,
        ElasticPOM,
        agreement,
        compare,
        error_bound,
        frame_motion,
        frame_response,
        without_rigid_motion,
    )
    from drakebots.lattice.pom.placement import candidates, place_actuators
    from drakebots.lattice.pom.pom import (
        ACTUATION,
        Conflict,
        Control,
        Kinematics,
        PlanesOfMotion,
        actuator_nodes,
        bounded_controls,
        inverse_kinematics,
        linear_c,
        place_of,
        stroke_conflicts,
        table,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
