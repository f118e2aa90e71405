# %% [markdown]
# # The gecko's course
#
# A soft robot of four legs, a torso and four suction feet. All its limbs bend to arcs; two numbers, the bending of the torso
# and the steering, are a gait. A generator chooses them anew in every half cycle so as to reach a list of targets.
#
# ![the gecko on its course](../../docs/gecko_meshcat.png)

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt
import numpy as np

from drakebots import gecko, record
from drakebots.robots.gecko.engines import cycle_motion

# %% [markdown]
# ## One gait
#
# A pose step is the pose of least stretch, twist and bending with two feet held; a cycle is two of them. With a bending of
# 80 degrees, how far does the robot go and turn in a cycle, over the steering?

# %%
robot = gecko.gecko("small")
for steering in (-0.5, -0.25, 0.0, 0.25, 0.5):
    motion = cycle_motion(robot, np.radians(80), steering)
    turn = np.degrees(motion.rotation)
    print(f"{steering:5.2f}: {100 * motion.forward:5.1f} cm, turns {turn:6.1f} degrees")

# %% [markdown]
# ## The course of the paper
#
# Four targets, each reached when the torso's front end is within 10 cm. Here the pose step simulates the robot too;
# `engine=gecko.Drake()` takes a robot with 38 velocities and switched suction feet.

# %%
problem = gecko.Simulation(epsilon=0.10)
result = gecko.simulate(problem)
result

# %%
data = result.data
front = data.marker_position.sel(marker="front")
figure, axis = plt.subplots(figsize=(4.5, 5), layout="constrained")
axis.plot(front.sel(axis="x"), front.sel(axis="y"), ".-")
for number, target in enumerate(problem.targets, 1):
    axis.add_patch(plt.Circle(target, problem.epsilon, fill=False))
    axis.annotate(str(number), target)
axis.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
plt.show()

# %%
record(result)

# %%
assert result.ok and result.metrics["targets_reached"] == 4
assert 35 <= result.metrics["half_cycles"] <= 45

# %% [markdown]
# ## And on
#
# `obstacles=` are polygons that it walks around, `final_heading=` the direction in which it arrives,
# `gecko.Drake(incline=gecko.STEEPEST)` walks up a wall of 84 degrees. [The gecko](../../docs/gecko.md) has the other
# options, [its evidence](../../docs/evidence/gecko.md) all figures beside the paper's.
