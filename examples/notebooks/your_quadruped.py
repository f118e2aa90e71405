# %% [markdown]
# # Your own quadruped
#
# `my_robot.urdf` has twelve joints, no meshes, no motors, and says nothing about drakebots. It stands, plans a walk and
# executes it, as your own URDF, SDF or MJCF will.
#
# ![robots from files](../../docs/your_robot.png)

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt

from drakebots import load, record
from drakebots.multibody import find_posture
from drakebots.robots.legged import Simulation, Tracking, simulate, track
from drakebots.trajopt.locomotion import LocomotionProblem, Walk, plan_locomotion

model = load("../my_robot.urdf")
for note in model.notes:
    print(note)

# %% [markdown]
# Notes say what was ignored, repaired or inferred: here its feet were found by their shape, and joints with a limit of
# effort got a motor.
#
# ## It stands

# %%
posture = find_posture(model)
print({name: round(angle, 3) for name, angle in posture.joints.items()})
held = simulate(Simulation(model, duration=0.5))
held

# %% [markdown]
# ## It plans a walk
#
# A cycle that repeats 0.3 m further on. It is a success only if a robot can use it: every foot lifts and carries, the base
# stays level, feet do not slide. Otherwise the verdict is "failed", with the reason.

# %%
plan = plan_locomotion(LocomotionProblem(model, Walk(forward=0.3)))
print(plan.summary())

# %%
data = plan.data
figure, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
for foot in data.foot.values:
    axes[0].plot(data.time, data.foot_position.sel(foot=foot, axis="z"), label=foot)
    axes[1].plot(data.time, data.foot_force.sel(foot=foot, axis="z"))
axes[0].set(ylabel="height of the feet [m]")
axes[0].legend(ncols=2, frameon=False)
axes[1].set(xlabel="time [s]", ylabel="load [N]")
plt.show()

# %% [markdown]
# ## It walks
#
# Executed in Drake's contact, which is not the planner's, by a whole-body controller: a quadratic program every 2 ms.

# %%
run = track(Tracking(plan, cycles=2))
print(f"{100 * run.metrics['stride_share']:.0f} % of the planned stride")
record(run)

# %%
assert held.ok and plan.ok and run.ok
assert run.metrics["stride_share"] > 0.9

# %% [markdown]
# [A robot of your own](../../docs/your_robot.md) has the options; [How to](../../docs/how_to.md) changes the ground and the cost.
