# %% [markdown]
# # A gait of HAMR with terms of one's own
#
# The planner of HAMR solves one contact-implicit program several times: with growing weights of the slack that softens
# contact, each from the answer before. Here that loop is written by hand around the same program, with a constraint and a
# cost of our own in it.

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt
import numpy as np

from drakebots import hamr, record
from drakebots.robots.hamr import GaitProblem

problem = GaitProblem(frequency=10, surface="card", knots=15)
program = problem.mathematical_program()
print(program.program)

# %% [markdown]
# What is asked for by name is in SI: `program["q.Chassis_pitch"]` [rad], `program["voltage"]` [V] by interval and
# actuator, `program["foot_force"]` [N] by interval, foot and axis. `program.position(knot, "FL")` is where a foot is [m].
#
# Our terms: the body shall hardly pitch, and the left front foot shall be 0.3 mm above the ground halfway.


# %%
def add(program):
    for pitch in program["q.Chassis_pitch"]:
        program.prog.AddQuadraticCost(1e3 * pitch**2, True)
    halfway = program["q"].shape[0] // 2
    height = program.position(halfway, "FL")[2]
    program.prog.AddLinearConstraint(height >= 0.3e-3)


# %% [markdown]
# ## The ladder by hand


# %%
plan = None
for weight in problem.weights.slack:
    program = problem.mathematical_program(start=plan, slack_weight=weight)
    add(program)
    result = program.solve(options={"max_iter": 200})
    plan = program.plan(result)
    print(f"slack weight {weight:g}: {plan.verdict}, {plan.message}")
    if plan.ok and weight != problem.weights.slack[0]:
        break

# %%
print(plan.summary())
pitch = np.degrees(np.abs(program.values(result, "q.Chassis_pitch"))).max()
print(f"{plan.metrics['stride_mm']:.2f} mm a cycle, pitch {pitch:.2f} deg")
height = program.position(7, "FL")[2]
assert plan.ok and result.GetSolution(height).Evaluate() >= 0.3e-3 - 1e-6

# %% [markdown]
# ## The same within the planner
#
# `add` is called with every program that the planner solves on its way.

# %%
own = hamr.plan(problem, add=add)
print(own.summary())
assert own.data.foot_position.sel(foot="FL", axis="z").values[7] >= 0.3e-3 - 1e-6

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
time = 1e3 * plan.data.time.values
for foot in plan.data.foot.values:
    height = plan.data.foot_position.sel(foot=foot, axis="z").values
    axes[0].plot(time, 1e3 * height, label=foot)
axes[0].set(xlabel="time [ms]", ylabel="height of the foot [mm]")
axes[1].plot(time, np.degrees(program.values(result, "q.Chassis_pitch")))
axes[1].set(xlabel="time [ms]", ylabel="pitch of the body [deg]")
axes[0].legend(frameon=False)
plt.show()

# %%
record(plan)

# %% [markdown]
# [Your own trajectory optimization](../../docs/optimize.md) has the same for other robots; `drakebots track` executes the
# plan under HAMR's leg estimator.
