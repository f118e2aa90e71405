"""URDF files in the format of old Drake (before 2017), turned into SDF.

`read_old_urdf` reads closed loops, springs, arithmetic and point feet, which Drake's
parser refuses or ignores; `is_old_urdf` says which files need it.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.old_urdf.read import is_old_urdf, read_old_urdf

__all__, __getattr__, __dir__ = lazy_face(__name__)
