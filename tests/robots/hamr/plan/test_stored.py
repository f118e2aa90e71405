"""Every plan that came with drakebots, checked again without its solver."""

import re

import numpy as np
import pytest

from drakebots.robots.hamr.plan.programs import (
    GaitProblem,
    JumpProblem,
    gait_program,
    jump_program,
)
from drakebots.trajopt.contact_implicit.result import audit_parts
from drakebots.trajopt.program.checkpoint import load_checkpoint
from tests.helpers.hamr_plans import stored_plan, stored_plans

GAITS = [name for name in stored_plans() if name != "jump"]


def opened(name: str):
    if name == "jump":
        problem, program = jump_program(JumpProblem())
    else:
        frequency, surface = re.fullmatch(r"([\d.]+)hz_(\w+)", name).groups()
        plan = GaitProblem(frequency=float(frequency), surface=surface)
        problem, program = gait_program(plan, np.zeros(38))
    return problem, program, load_checkpoint(stored_plan(name), program)


def test_there_are_nine_gaits_and_a_jump():
    assert len(GAITS) == 9
    assert "jump" in stored_plans()


@pytest.mark.parametrize("name", [*GAITS, "jump"])
def test_a_stored_plan_obeys_mechanics_and_contact(name):
    problem, program, x = opened(name)
    found = audit_parts(problem, program.view(x))
    assert found["complementarity_max"] <= 1e-6
    assert found["del_residual_max"] <= 1e-8
    assert found["loop_gap_max"] <= 1e-8
    assert found["penetration_max"] <= 1e-8
    assert max(program.residuals(x).values()) <= 1e-6


@pytest.mark.parametrize("name", GAITS)
def test_no_gait_is_driven_by_a_jump_of_momentum(name):
    """p+ of the last interval is p- of the first: the Legendre condition."""
    problem, program, x = opened(name)
    found = audit_parts(problem, program.view(x))
    assert found["momentum_defect"] <= 1e-8
    # On Teflon at 30 Hz the goal is 5 mm: docs/hamr.md says why.
    goal = 4.75 if name == "30hz_teflon" else 9.5
    assert program.view(x)["q"][-1, 0] >= goal  # mm


def test_a_free_momentum_jump_would_be_seen():
    """The defect is there to be found: kick the first velocity interval."""
    problem, program, x = opened(GAITS[0])
    parts = {k: np.array(v) for k, v in program.view(x).items()}
    parts["q"][0, 0] -= 0.1
    assert audit_parts(problem, parts)["momentum_defect"] > 1e-4
