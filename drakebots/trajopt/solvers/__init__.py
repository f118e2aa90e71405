"""Solvers: IPOPT with exact Hessians, and Drake's SNOPT and IPOPT.

    solution = solve(program, x0)                  # or solver="snopt", "ipopt"
    print(solution.summary())

A program is also a MathematicalProgram, for all of Drake's solvers and tools; costs,
bounds and constraints may be added to it, and exact Hessians survive:

    lowered = lower(program)
    result = ExactIpoptSolver().Solve(lowered.prog, program.pack(guess))
    parts = program.view(result.get_x_val())

Programs with complementary pairs have a solver of their own:

    add_complementarity(prog, height, force, "contact")
    result = ComplementaritySolver().Solve(prog, guess)

:func:`solve_penalty_continuation`, the same ladder, makes the contacts of our plans
hard.
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.trajopt.solvers.complementarity import (
        ComplementaritySolver,
        add_complementarity,
    )
    from drakebots.trajopt.solvers.drake_solvers import solve_drake
    from drakebots.trajopt.solvers.exact_solver import (
        ExactIpoptSolver,
        fill,
        options_of,
    )
    from drakebots.trajopt.solvers.ipopt_exact import Raw, solve_exact
    from drakebots.trajopt.solvers.mathematical_program import Compute, Lowered, lower
    from drakebots.trajopt.solvers.penalty import (
        Clock,
        PenaltyContinuation,
        PenaltyStage,
        Rung,
        Start,
        near,
        solve_penalty_continuation,
        start_from,
    )
    from drakebots.trajopt.solvers.qp import solve_qp
    from drakebots.trajopt.solvers.read_back import ReadBack, name_of
    from drakebots.trajopt.solvers.solve import (
        SOLVERS,
        TOLERANCE,
        ProgramResult,
        Solution,
        check_solver,
        is_installed,
        planning,
        scaled_violation,
        solve,
    )

__all__, __getattr__, __dir__ = lazy_face(__name__)
