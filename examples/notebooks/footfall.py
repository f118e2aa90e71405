# %% [markdown]
# # A motion by phases
#
# Which foot stands when is yours to say: a footfall by foot, in seconds. Where the motion goes, and what it passes on its
# way, are rows of the same program. Then motions in a row that are one plan, a jump onto a box, and a public robot.

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if not (find_spec("drakebots") and find_spec("gymnasium")):
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..[gym]")

# %%
from pathlib import Path

import gymnasium
import matplotlib.pyplot as plt
import numpy as np

from drakebots import load, record
from drakebots.multibody import Plateau
from drakebots.trajopt.locomotion import (
    Footfall,
    Goal,
    Hop,
    LocomotionProblem,
    Series,
    Walk,
    WayPoint,
    plan_locomotion,
)

# %% [markdown]
# ## A footfall of one's own
#
# Diagonal legs swing in turn, the first pair earlier than a trot would; feet that are not named stand all the time.

# %%
first, second = [(0.0, 0.3), (0.7, 1.6)], [(0.0, 0.9), (1.3, 1.6)]
motion = Footfall(
    contacts={"FL": first, "RR": first, "FR": second, "RL": second},
    duration=1.6,
    forward=0.1,
)
problem = LocomotionProblem("mini_cheetah", motion, knots=33)
plan = plan_locomotion(problem)
print(plan.summary())
assert plan.ok

# %% [markdown]
# ## Terms of one's own
#
# Halfway through its swing the left front foot shall pass 3 cm further out than it would: a stone lies in its way. `add`
# gives the row to the planner.

# %%
knot = 10
foot = plan.data.foot_position.sel(foot="FL").values[knot]
aside = foot[1] + 0.03


def add(program):
    program.prog.AddLinearConstraint(program.position(knot, "FL")[1] >= aside)


around = plan_locomotion(problem, add=add)
print(around.summary())
passed = around.data.foot_position.sel(foot="FL").values[knot]
assert around.ok and passed[1] >= aside - 1e-6

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
for name, found in {"plan": plan, "around the stone": around}.items():
    x, y, z = found.data.foot_position.sel(foot="FL").values.T
    axes[0].plot(x, y, label=name)
    axes[1].plot(found.data.time, z)
axes[0].set(xlabel="x of the foot [m]", ylabel="y [m]")
axes[1].set(xlabel="time [s]", ylabel="height of the foot [m]")
axes[0].legend(frameon=False)
plt.show()

# %%
record(around)

# %% [markdown]
# ## Motions in a row
#
# Past a corner, a turn in which the left front foot steps over a stone, and a walk that ends at rest: one program, so the
# momentum goes through where two motions meet. Way points are part of a motion.

# %%
corner = WayPoint("base", (0.15, 0.08, None), share=0.5)
stone = WayPoint("FL", (None, None, 0.1), share=0.37)
course = Series(
    [
        Goal(0.3, waypoints=[corner]),
        Goal(turn=0.5, waypoints=[stone]),
        Walk(0.2),
    ]
)
row = plan_locomotion(LocomotionProblem("mini_cheetah", course))
print(row.summary())
for part in row.metrics["motions"]:
    print(part["motion"], f"until {part['until_s']:.2f} s")
time, base = row.data.time.values, row.data.base_position.values
assert row.ok
assert np.allclose(base[-1, :2], [0.3 + 0.2 * np.cos(0.5), 0.2 * np.sin(0.5)])

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3), layout="constrained")
axes[0].plot(*base[:, :2].T)
axes[0].plot(0.15, 0.08, "o", label="way point")
axes[0].set(xlabel="x of the base [m]", ylabel="y [m]", aspect="equal")
axes[0].legend(frameon=False)
axes[1].plot(time, row.data.foot_position.sel(foot="FL", axis="z").values)
axes[1].set(xlabel="time [s]", ylabel="height of the left front foot [m]")
plt.show()

# %%
record(row)

# %% [markdown]
# ## A jump onto a box

# %%
box = Plateau(start=0.35, end=2.0, height=0.06)
jump = plan_locomotion(
    LocomotionProblem("mini_cheetah", Hop(0.12, forward=0.7), terrain=box)
)
print(jump.summary())
climbed = np.diff(jump.data.base_position.values[[0, -1], 2])[0]
assert jump.ok and abs(climbed - 0.06) < 0.02
record(jump)

# %% [markdown]
# ## A public quadruped
#
# Any robot goes the same way, by its file: here Gymnasium's ant as it is (`pip install ".[gym]"`), in MJCF. A
# URDF or SDF from elsewhere is `load("path/to/robot.urdf")`; `load` finds the feet, or says what the file leaves open.

# %%
ant = load(Path(gymnasium.__file__).parent / "envs/mujoco/assets/ant.xml")
feet = [foot.name for foot in ant.feet]
print(feet)
stands = {feet[0]: first, feet[2]: first, feet[1]: second, feet[3]: second}
motion = Footfall(contacts=stands, duration=1.6, forward=0.1)
public = plan_locomotion(LocomotionProblem(ant, motion, knots=33))
print(public.summary())
force = public.data.foot_force.sel(axis="z").values
swinging = np.abs(public.data.time.values - 0.5) < 0.15
assert public.ok and np.abs(force[swinging][:, [0, 2]]).max() < 1e-6
record(public)
