# %% [markdown]
# # The MathematicalProgram under a plan
#
# Every plan of drakebots is the solution of one program: named variables, named rows, costs, all with exact first and
# second derivatives. Here is that program for the walk of a quadruped, as Drake's `MathematicalProgram`, with a cost and
# a constraint of our own added to it.

# %%
import matplotlib.pyplot as plt
import numpy as np

from drakebots import load
from drakebots.trajopt.locomotion import (
    LocomotionProblem,
    gait_program,
    kinematic_guess,
    plan_gait,
    stand,
)
from drakebots.trajopt.solvers import ExactIpoptSolver, lower

robot_file = "../my_robot.urdf"

# %% [markdown]
# ## From a robot to a program
#
# `stand` finds how the robot stands and puts it on its ground. Inside, everything is in units of the robot itself: lengths
# in heights of its centre of mass, forces in its weight, so that one set of weights and tolerances fits any size.
# `plan_gait` chooses which foot is where when; `gait_program` writes the equations; `kinematic_guess` is the start.

# %%
problem = LocomotionProblem(robot_file, "walk", forward=0.2)
standing = stand(load(robot_file))
gait = plan_gait(problem, standing)
_, program = gait_program(gait, standing)
guess = program.pack(kinematic_guess(gait, standing))
print(program)

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
# `lower` makes a `MathematicalProgram` of it, with a Drake binding for every block. `ExactIpoptSolver` is a Drake solver
# that knows the exact sparse Hessians of these bindings; Drake's own SNOPT and IPOPT take the same program.

# %%
lowered = lower(program)
result = ExactIpoptSolver().Solve(lowered.prog, guess)
parts = program.view(result.get_x_val())
worst = max(program.residuals(result.get_x_val()).values())
print(result.get_solver_details().status, f"cost {result.get_optimal_cost():.4f}")
print(f"largest residual {worst:.1e}")
assert result.is_success() and worst < 1e-6

# %% [markdown]
# ## A cost of our own
#
# `lowered.view()` has the decision variables by name, `q` a row for every knot. The walk bobs up and down; ask for a trunk
# that stays at 97 % of its standing height. The exact Hessian now includes the new cost.

# %%
height = standing.system.coordinates.index("trunk_z")
wanted = 0.97 * standing.q[height]
for q in lowered.view()["q"]:
    lowered.prog.AddQuadraticCost(1e3 * (q[height] - wanted) ** 2)
low = ExactIpoptSolver().Solve(lowered.prog, result.get_x_val())
low_parts = program.view(low.get_x_val())
assert low.is_success()

# %% [markdown]
# ## A constraint of our own
#
# No motor may use more than 80 % of the largest torque so far.

# %%
u = lowered.view()["u"].ravel()
most = np.full(len(u), 0.8 * abs(low_parts["u"]).max())
lowered.prog.AddLinearConstraint(np.eye(len(u)), -most, most, u)
weak = ExactIpoptSolver().Solve(lowered.prog, low.get_x_val())
weak_parts = program.view(weak.get_x_val())
assert weak.is_success() and abs(weak_parts["u"]).max() <= most[0] + 1e-6

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
found = {"walk": parts, "low trunk": low_parts, "weaker motors": weak_parts}
for name, values in found.items():
    time = np.append(0, np.cumsum(values["h"]))
    axes[0].plot(time, values["q"][:, height] / standing.q[height], label=name)
    axes[1].plot(time[1:], abs(values["u"]).max(axis=1), label=name)
axes[0].set(xlabel="time [natural units]", ylabel="height of the trunk / standing")
axes[1].set(xlabel="time [natural units]", ylabel="largest torque [weight x height]")
axes[1].legend(frameon=False)
plt.show()

# %% [markdown]
# [Planning through contact](../../docs/planning.md) has all equations; a program written from its parts, with free
# contacts, is `examples/mathematical_program.py`.
