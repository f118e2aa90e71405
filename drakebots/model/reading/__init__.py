"""Model files as strangers write them, checked and made ready for Drake's parser.

`check_model_file` refuses what cannot be a model, before anything parses it.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.model.reading.limits import MAX_BYTES, check_model_file

__all__, __getattr__, __dir__ = lazy_face(__name__)
