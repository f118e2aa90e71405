"""MJCF, the format of MuJoCo, turned into SDF for Drake's parser.

Drake's own reader of MJCF leaves out much that decides how a robot moves: joint
stiffness, motors other than `<motor>`, gears, several joints in their order,
keyframes, meshes other than .obj. :func:`read_mjcf` compiles a file as MuJoCo's
documentation says (https://mujoco.readthedocs.io/en/stable/XMLreference.html).
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.reading.mjcf.read import Mjcf, read_mjcf

__all__, __getattr__, __dir__ = lazy_face(__name__)
