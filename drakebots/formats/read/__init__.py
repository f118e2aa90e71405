"""Model files as strangers write them, checked and made ready for Drake's parser.

`check_model_file` refuses what cannot be a model, before anything parses it;
`read_robot` finds meshes and packages, converts and repairs what Drake would stop at,
and notes all that it changed.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.formats.read.findings import Findings
    from drakebots.formats.read.limits import check_model_file
    from drakebots.formats.read.read import read_robot

__all__, __getattr__, __dir__ = lazy_face(__name__)
