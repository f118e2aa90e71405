# %% [markdown]
# # The MathematicalProgram under a plan
#
# Every plan of drakebots is the solution of one program: named variables, named rows, costs, all with exact first and
# second derivatives. Here is that program for the walk of a quadruped, as Drake's `MathematicalProgram`, with a cost and
# a constraint of our own added to it.

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt
import numpy as np

from drakebots import record
from drakebots.trajopt.locomotion import LocomotionProblem, Walk

problem = LocomotionProblem("../my_robot.urdf", Walk(forward=0.2))
program = problem.mathematical_program()
print(program.program)

# %% [markdown]
# The rows `dynamics` are the discrete Euler-Lagrange equations at the knots: the momentum at the end of an interval is that
# at the start of the next,
#
# $$ p^+_{k-1}(q_{k-1}, q_k, u_{k-1}, f_{k-1}) = p^-_k(q_k, q_{k+1}, u_k, f_k) . $$
#
# `wrap` is the same equation from the end of the cycle to its start. Without it a gait could gain momentum from nowhere.
#
# ## Solve it
#
# `program.prog` is a `pydrake.solvers.MathematicalProgram` with a binding for every block and the planner's first guess.
# `program.solve()` is IPOPT with the exact sparse Hessians of these bindings; `solver="snopt"` and `"ipopt"` are Drake's.

# %%
result = program.solve()
print(result.get_solver_details().summary())
assert result.is_success()
assert max(result.get_solver_details().residuals.values()) < 1e-6

# %% [markdown]
# ## A cost of our own
#
# `program["q.trunk_z"]` is the height of the trunk at every knot [m], as symbolic expressions of the decision variables
# (which are scaled). The walk bobs up and down; ask for a trunk that stays at 97 % of
# the height that it has now. The Hessian stays exact.

# %%
height = program.values(result, "q.trunk_z").mean()
for z in program["q.trunk_z"]:
    program.prog.AddCost(1e4 * (z - 0.97 * height) ** 2)
low = program.solve()
assert low.is_success()

# %% [markdown]
# ## A constraint of our own
#
# No motor may use more than 80 % of the largest torque so far [N m].

# %%
most = 0.8 * abs(program.values(low, "u")).max()
for torque in program["u"].ravel():
    program.prog.AddConstraint(torque, -most, most)
weak = program.solve()
assert weak.is_success()
assert abs(program.values(weak, "u")).max() <= most + 1e-6

# %% [markdown]
# ## Functions of bodies
#
# Where a point of a body is, the centre of mass, the angular momentum: each is a few variables of its own, in SI. Halfway
# through, the left front foot shall pass 2 cm further out.

# %%
foot = next(iter(program.bodies.points))
knot = program["q"].shape[0] // 2
place = program.position(knot, foot)
outward = program.solve()
side = outward.GetSolution(place[1]).Evaluate()
program.prog.AddLinearConstraint(place[1] >= side + 0.02)
outward = program.solve()
print(foot, side, outward.GetSolution(place[1]).Evaluate())
assert outward.is_success()

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for name, found in {"walk": result, "low trunk": low, "weaker motors": weak}.items():
    time = np.append(0, np.cumsum(program.values(found, "h")))
    axes[0].plot(time, program.values(found, "q.trunk_z"), label=name)
    axes[1].plot(time[1:], abs(program.values(found, "u")).max(axis=1))
axes[0].set(xlabel="time [s]", ylabel="height of the trunk [m]")
axes[1].set(xlabel="time [s]", ylabel="largest torque [N m]")
figure.legend(ncols=3, frameon=False, loc="outside upper center")
plt.show()

# %% [markdown]
# ## A plan as any other
#
# It is judged, saved, drawn and tracked as every plan is.

# %%
plan = program.plan(weak)
print(plan.summary())
assert plan.ok
record(plan)

# %% [markdown]
# `plan_locomotion(problem, add=...)` does all this within the planner. [Your own trajectory
# optimization](../../docs/optimize.md) shows the same for other robots, [planning through contact](../../docs/planning.md)
# has all equations. Drake's SNOPT and IPOPT take the same program; a program
# written from its parts, with free contacts, is in `examples/mathematical_program.py`.
