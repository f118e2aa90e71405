# %% [markdown]
# # A skinned robot's motion and its skin, in turn
#
# A space-time program finds the motion of the skeleton over all knots at once and knows the skin by its mass and its
# stiffness at rest. A step-by-step plan follows that motion with the whole elastic skin, and says what forces the skin
# really makes. Both are repeated, each with what the other found, until they agree (`drakebots plan` does so by itself).
# Here that loop is written by hand, with a term of our own in the program.

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt
import numpy as np

from drakebots import quads, record

problem = quads.Problem("beetle", "lift_single", more={"duration": 1.0})
planner = quads.step_planner(problem)
coordinates = problem.robot.coordinates

# %% [markdown]
# The program by names in SI: `program["torque"]` [N m], `program["foot_force"]` [N], `program["com"]` [m],
# `program["skin_torque"]` of the skin on the joints [N m]; `program.position(knot, "torso")` is a body's place [m].

# %%
program = problem.program().mathematical_program()
print(program.program)


# %% [markdown]
# Our term: in the middle of the motion the torso is 1 cm higher than it would be.


# %%
def add(program, height):
    middle = program["q"].shape[0] // 2
    program.prog.AddLinearConstraint(program.position(middle, "torso")[2] >= height)


free = program.plan(program.solve())
heights = free.data.euler_position.isel(coordinate=2).values
asked = heights[len(heights) // 2] + 0.01
add(program, asked)
print(program.plan(program.solve()).summary())

# %% [markdown]
# ## The loop

# %%
start = influence = follow = None
for k in range(2):
    program = problem.program(k, influence, follow).mathematical_program(start=start)
    add(program, asked)
    start = motion = program.plan(program.solve())
    steps = quads.follow(problem, motion, planner=planner)
    planned = [motion.data[f"euler_{n}"].values for n in ("position", "velocity")]
    planned.append(motion.data.euler_acceleration.values)
    reached = coordinates.from_positions(steps.data.position.values)
    difference = quads.motion_difference(reached, planned[0])
    print(f"{k + 1}: {motion.verdict}, {steps.verdict}, difference {difference:.3g}")
    influence = quads.skin_influence(problem.robot, steps, planned)
    follow = planned[0]

# %%
assert motion.ok and steps.ok and difference < problem.alternation.tolerance
# Between knots the motion is a spline, which rounds the peak at a knot off.
lifted = planned[0][len(planned[0]) // 2, 2]
print(f"torso at {1e3 * lifted:.1f} mm, asked for {1e3 * asked:.1f} mm")
print(f"largest torque {np.abs(steps.data.torque.values).max():.2f} N m")

# %%
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for name, run in {"without our term": free, "planned": motion}.items():
    axis.plot(run.data.time, 1e3 * run.data.euler_position[:, 2], label=name)
axis.plot(steps.data.time, 1e3 * reached[:, 2], ":", label="step by step, in the skin")
axis.set(xlabel="time [s]", ylabel="height of the torso [mm]")
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# `quads.plan(problem, add=...)` adds the same term in every iteration.

# %%
record(steps)
