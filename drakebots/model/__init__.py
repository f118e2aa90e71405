"""Robot models: find, check and load a model file, and what lies beside it.

    model = load("hamr")              # by name, from the models folder
    model = load("my_robot.urdf")     # or any URDF, SDF, MJCF or dmd.yaml
    print(model.report())             # masses, joints, loops, feet, notes

Drake's parser stays the only source of a model. This room checks the file first, so
that every failure names the element; adds the feet, points and closed loops that a
model file cannot state, from the YAML beside it (`drakebots.model.description`);
reads URDFs in the format of old Drake; finds the model of a result again; and writes
SDF (the `Sdf...` classes and :func:`model_sdf`) and reads `params.yaml`
(:class:`Parameters`) for the model folders that are made by scripts.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.contents import model_contents
    from drakebots.model.couplers import Coupler, add_couplers, coupled_joints
    from drakebots.model.description import Point
    from drakebots.model.feet.soles import shape_points
    from drakebots.model.find import (
        ENDINGS,
        available_models,
        find_model,
        model_stem,
        package_root,
        skin_path,
    )
    from drakebots.model.load import load, robot_alone
    from drakebots.model.loops import Loop, LoopClosure, find_body
    from drakebots.model.model import Model
    from drakebots.model.parameters import Parameters, parameters_of
    from drakebots.model.parse import package_map
    from drakebots.model.poses import standing_poses
    from drakebots.model.reading.inertias import principal_inertia
    from drakebots.model.reading.meshes import obj_mesh
    from drakebots.model.sdf import (
        SdfGeometry,
        SdfJoint,
        SdfLink,
        SdfModel,
        SdfPose,
        SdfSpringDamper,
        model_sdf,
    )
    from drakebots.model.stored import model_folders, model_of, model_provenance

__all__, __getattr__, __dir__ = lazy_face(__name__)
