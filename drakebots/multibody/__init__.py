"""A model as a Drake plant: built, simulated, and as expressions.

    builder = DiagramBuilder()
    robot = build_robot(load("hamr"), builder, ground=Ground(friction=0.6))
    ...
    end = advance(simulator, robot, 2.0, progress=progress)
    data = trajectory_dataset(robot, times, states)

`Robot` holds the finalized plant, its units (a gram-sized robot is computed in mm, g,
ms; everything that leaves it is in SI) and its closed loops. :class:`Twin` is a plant
as CasADi expressions, and the room `posture` how a robot stands; :class:`Limb` is a
soft limb as a chain of joints, :class:`TimeStepper` steps a robot in time independent
of Drake's contact solvers. What robots stand on is a terrain:

    Flat(), Slope(0.1), Step(0.25, 1.05, 0.11), Stairs(0.02), HeightField(x, y, z)
    Image("hills.png", height=0.1), Mesh("rocks.obj")
    Plateau(0.25, 1.05, 0.11)  # a step without a wall: its normals point up
    SignedDistance(lambda p: p[2] - 0.02 * ca.sin(p[0]))

A `Ground` is a terrain of one material, in a plant.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.multibody.base import (
        EULER_JOINTS,
        attach_base,
        base_body,
        base_joints,
        floats,
        root_bodies,
        set_base_pose,
    )
    from drakebots.multibody.extent import Cover, Distances, covers, lowest_points
    from drakebots.multibody.hard_contact import (
        PYRAMID,
        SteppedPlant,
        StepTerms,
        TimeStepper,
        joint_limits,
        limit_rows,
        solve_lcp,
    )
    from drakebots.multibody.judging import (
        FALLEN_TILT,
        LEANING,
        MISSED,
        SUNK,
        Finding,
        SimulatedRun,
        asked,
        carried,
        closure_residuals,
        drifted,
        fall,
        fell_at,
        has_fallen,
        judged,
        looked_at,
        moving,
        open_loops,
        saturated,
        strides_of,
        tilt,
        tilted,
        too_fast,
        went,
    )
    from drakebots.multibody.limbs import (
        Limb,
        LimbMap,
        check_limbs,
        couple_joints,
        read_limbs,
    )
    from drakebots.multibody.plant import (
        COLOUR,
        CONTACT,
        GROUND_FRICTION,
        ClosedChain,
        Ground,
        Robot,
        build_robot,
        set_friction,
    )
    from drakebots.multibody.posture import Posture, find_posture
    from drakebots.multibody.simulate import (
        DiagramRun,
        Logged,
        Sampled,
        add_loggers,
        advance,
        advance_to,
        joint_angles,
        trajectory_dataset,
    )
    from drakebots.multibody.soles import (
        add_foot_contacts,
        add_soles,
        forces_on_soles,
        nearest_in_hull,
        polygon,
        soles_jacobian,
        touch_by_soles,
    )
    from drakebots.multibody.surfaces import (
        HeightField,
        Image,
        Mesh,
        Terrain,
        contact_axes,
    )
    from drakebots.multibody.terrain import (
        Blocks,
        Flat,
        Plateau,
        SignedDistance,
        Slope,
        Stairs,
        Step,
    )
    from drakebots.multibody.twin import Twin
    from drakebots.multibody.twin_joints import without_rounding

__all__, __getattr__, __dir__ = lazy_face(__name__)
