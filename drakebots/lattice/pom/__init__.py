"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.lattice.pom.kinematics import (
        Conflict,
        Kinematics,
        bounded,
        solve,
        stroke_conflicts,
        table,
    )
    from drakebots.lattice.pom.placement import place
    from drakebots.lattice.pom.pom import (
        ACTUATION,
        Control,
        PlanesOfMotion,
        actuator_nodes,
        place_of,
    )
    from drakebots.lattice.pom.validity import (
        Agreement,
        PlaneCheck,
        agreement,
        check_plane,
        frame_motion,
        rule_radius,
        without_rigid_motion,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
