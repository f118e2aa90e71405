"""Nonlinear programs made of blocks with exact sparse derivatives.

A :class:`Block` is a CasADi function of a few variables; a :class:`Program` uses blocks
at many knots and adds their rows to named rows. It can be printed and evaluated, and
names its worst rows; :func:`assemble` turns it into the functions of an NLP solver.

    b = ProgramBuilder("valleys")
    x = b.add_variables("x", 10, [""], lower=-2.0, upper=2.0).indices
    b.cost("valley", {"a": x[:-1], "b": x[1:]}, lambda a, b: (b - a**2) ** 2)
    program = b.build()
    print(program.objective(program.pack({"x": 1.0})))
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.program.assemble import Assembled, assemble
    from drakebots.trajopt.program.block import Block, compile_blocks
    from drakebots.trajopt.program.builder import ProgramBuilder
    from drakebots.trajopt.program.machine import compiled, compiler, many
    from drakebots.trajopt.program.program import (
        ADDED,
        Group,
        Program,
        Term,
        belongs,
        load_checkpoint,
        program_name,
        read_arrays,
        read_checkpoint,
        save_checkpoint,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
