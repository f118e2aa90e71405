"""TODO: what this room is."""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.program.assemble import Assembled, assemble
    from drakebots.trajopt.program.block import Block, compile_blocks
    from drakebots.trajopt.program.builder import ProgramBuilder
    from drakebots.trajopt.program.checkpoint import (
        load_checkpoint,
        read_checkpoint,
        save_checkpoint,
    )
    from drakebots.trajopt.program.program import Group, Program, Term

__all__, __getattr__, __dir__ = lazy_face(__name__)
