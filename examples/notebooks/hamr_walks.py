# %% [markdown]
# # HAMR walks
#
# HAMR-VI is a walking robot of 1.5 g and 45 mm. Each of its four legs is a spherical five-bar linkage, a closed chain of
# nine flexures, and is driven by two piezoelectric benders: one swings it forward and back, one lifts it.
#
# ![HAMR-VI](../../models/hamr/hamr.png)

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt

from drakebots import hamr, load, record

model = load("hamr")
model.report()["mass_kg"], len(model.loops)

# %% [markdown]
# ## A trot
#
# `Simulation` is the problem, with defaults for every field. Voltages are sines about 112.5 V; diagonal legs move together.
# The ground is card, with a friction coefficient of 0.51.

# %%
problem = hamr.Simulation(gait="trot", frequency=10, surface="card", cycles=4)
result = hamr.simulate(problem)
result

# %% [markdown]
# The table says how the run ended, the stride in millimetres per cycle, how much the feet slip (the distance that feet slide
# backward over the distance that the robot goes), and the largest gap of its closed loops, which a simulator closes only to its
# tolerance. The data below it have a name, dimensions and a unit each.
#
# ## What the legs do

# %%
data = result.data
figure, axes = plt.subplots(2, 1, figsize=(8, 4), sharex=True, layout="constrained")
for foot in data.foot.values:
    axes[0].plot(data.time, 1e3 * data.foot_force.sel(foot=foot, axis="z"), label=foot)
axes[0].set(ylabel="load of the feet [mN]")
axes[0].legend(ncols=4, frameon=False)
axes[1].plot(data.time, 1e3 * data.base_position.sel(axis="x"))
axes[1].set(xlabel="time [s]", ylabel="distance [mm]")
plt.show()

# %% [markdown]
# The weight is 14.5 mN; the diagonal pairs carry it in turn.
#
# ## Look at it
#
# A recorded scene shows itself in a notebook: drag to turn, scroll to zoom. `scene.save("trot.html")` writes it as a page.

# %%
scene = record(result)
scene

# %%
assert result.ok
assert 7 < result.metrics["stride_mm_per_cycle"] < 11
assert result.metrics["loop_gap_max_mm"] < 1e-3

# %% [markdown]
# ## And on
#
# Try `surface="sandpaper"`, `frequency=30` (the robot is thrown around), `gait="pronk"`. [HAMR-VI](../../docs/hamr.md) has the
# other options, [its evidence](../../docs/evidence/hamr.md) the strides on three surfaces beside the paper's; [Plan a gait](plan_a_gait.py) finds a better one.
