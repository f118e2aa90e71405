"""A robot as a value: its loops, couplers, motors, feet, points, named poses.

    model = load("hamr")        # of drakebots.formats, which reads, inspects, decides
    print(model.report())       # masses, joints, loops, feet, notes
    model.add_to(plant)

Drake's parser stays the only source of a model; a :class:`Model` adds the feet, points
and closed loops that a file cannot state (`drakebots.model.description`), and knows
what can be computed of loops (:class:`LoopClosure`). A plant's joints, motors, bodies
and forces come as lists from `drakebots.model.views`. :class:`Parameters` reads the
`params.yaml` of model folders that are made by scripts.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.formats import load
    from drakebots.model.actuators import Actuator, choose_actuators
    from drakebots.model.candidates import (
        FootCandidate,
        foot_candidates,
        named_feet,
        split_names,
    )
    from drakebots.model.contents import model_contents
    from drakebots.model.couplers import Coupler, add_couplers, coupled_joints
    from drakebots.model.description import (
        Point,
        Reading,
        find_srdf,
        finite_number,
        read_sidecar,
        read_srdf,
        standing,
        standing_poses,
    )
    from drakebots.model.find import (
        ENDINGS,
        available_models,
        file_hashes,
        find_model,
        is_identified,
        is_ours,
        model_files,
        model_stem,
        named_parameters,
        package_root,
        sidecar_path,
        skin_path,
    )
    from drakebots.model.links import Links
    from drakebots.model.loops import (
        ROWS,
        Loop,
        LoopClosure,
        find_body,
        independent_rows,
    )
    from drakebots.model.model import (
        DRAKE_REFUSALS,
        KEPT_PARTS,
        Model,
        Summary,
        drake_message,
        heard,
        model_provenance,
        package_map,
        parse_model,
        shortened,
    )
    from drakebots.model.parameters import Parameters, given, parameters_of
    from drakebots.model.soles import (
        box_corners,
        plane_rotation,
        shape_points,
        shape_sizes,
    )
    from drakebots.model.views import (
        actuators_of,
        bodies_of,
        central_inertia,
        context_at,
        contexts_along,
        driven_joints,
        effort_limits,
        force_elements,
        free_bodies,
        gravity,
        is_floating,
        joined_bodies,
        joint_slices,
        joint_springs,
        joints_of,
        length_indices,
        model_names,
        moved_positions,
        one_named,
        outward_joints,
        part_name,
        point_in_world,
        point_jacobian,
        position_limits,
        rotor_inertias,
        single_joints,
        slides,
        sliding_motors,
        spring_law,
        with_joints,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
