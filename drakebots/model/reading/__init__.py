"""Model files as strangers write them, checked and made ready for Drake's parser.

`check_model_file` refuses what cannot be a model, before anything parses it;
`read_model_file` finds meshes and packages, converts and repairs what Drake would stop
at, and notes all that it changed or that Drake ignores.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.reading.file_loops import file_loops
    from drakebots.model.reading.findings import Findings
    from drakebots.model.reading.limits import MAX_BYTES, check_model_file
    from drakebots.model.reading.messages import heard, note_messages, shortened
    from drakebots.model.reading.read import Reading, read_model_file
    from drakebots.model.reading.tree import (
        loose_bodies,
        read_tree,
        remove_bodies,
        write_tree,
    )
    from drakebots.model.reading.urdf.turn import TURNS

__all__, __getattr__, __dir__ = lazy_face(__name__)
