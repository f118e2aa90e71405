"""Files in and out: robots from URDF, SDF, MJCF, old-Drake URDF, and written as these.

    model = load("hamr")              # by name, from the models folder
    model = load("my_robot.urdf")     # or any URDF, SDF, MJCF or dmd.yaml
    write_mjcf(model, "hamr.xml")
    write_urdf(model, "hamr.urdf")
    write_sdf(model, "hamr.sdf")

To load is to read the file and the YAML beside it (`read/`: strangers' files are
checked and mended, ours taken as they are), to inspect what Drake's parser, the only
source of a model, makes of it, and to decide what the file leaves open: motors, feet,
closed loops. :func:`model_of` finds the model of a result again. The `Sdf...` classes
and :func:`model_sdf` write model folders.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.formats.load import load, loaded, robot_alone
    from drakebots.formats.read.masses import principal_inertia
    from drakebots.formats.read.meshes import obj_mesh
    from drakebots.formats.read.read import OF_SKIN
    from drakebots.formats.stored import (
        model_folders,
        model_of,
        terrain_of,
    )
    from drakebots.formats.write.limbs import (
        add_limbs,
        limb_parts,
        limbs_sdf,
        write_limbs,
    )
    from drakebots.formats.write.mjcf import write_mjcf
    from drakebots.formats.write.parts import Part, plain_robot, read_parts
    from drakebots.formats.write.robot_sdf import write_sdf
    from drakebots.formats.write.sdf import (
        SdfGeometry,
        SdfJoint,
        SdfLink,
        SdfModel,
        SdfPose,
        model_sdf,
    )
    from drakebots.formats.write.urdf import LOOPS, write_urdf
    from drakebots.model import model_provenance

__all__, __getattr__, __dir__ = lazy_face(__name__)
