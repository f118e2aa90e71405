# %% [markdown]
# # Plan a gait
#
# The trot of [HAMR walks](hamr_walks.py) was found by hand. Here a program finds one: nothing says which foot touches
# when; hard contact, friction, the closed loops and the second-order dynamics of all 38 coordinates are its rows.
# [Planning through contact](../../docs/planning.md) has the equations.
#
# ![nine planned gaits](../../docs/hamr_gaits.png)

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

problem = hamr.GaitProblem(frequency=10, surface="card", stride=0.01)
problem

# %% [markdown]
# ## Solve
#
# 5676 variables at 51 knots. It takes about 40 s of processor time; in a terminal, `drakebots plan hamr` shows the progress,
# and Ctrl-C keeps the best iterate.

# %%
plan = hamr.plan(problem)
plan

# %% [markdown]
# Residuals are in the program's units; the metrics are in the units that their names say. `stride_mm` is the distance of one
# cycle, `slip` how much feet slide.
#
# The planned contact forces, foot by foot: the program has found the footfall.

# %%
data = plan.data
figure, axis = plt.subplots(figsize=(8, 2.5), layout="constrained")
for foot in data.foot.values:
    axis.plot(data.time, 1e3 * data.foot_force.sel(foot=foot, axis="z"), label=foot)
axis.set(xlabel="time [s]", ylabel="planned load [mN]")
axis.legend(ncols=4, frameon=False)
plt.show()

# %% [markdown]
# ## Execute
#
# A plan counts by its replay. `track` runs it on the whole robot, under Drake's compliant contact instead of the planner's
# hard one, with the leg estimator and controller in the loop.

# %%
run = hamr.track(hamr.Tracking(plan, cycles=6))
planned, executed = plan.metrics["stride_mm"], run.metrics["stride_mm_per_cycle"]
print(f"planned {planned:.2f}, executed {executed:.2f} mm per cycle")
record(run)

# %% [markdown]
# ## For a real drive

# %%
swing = np.ptp(plan.data.voltage.values, axis=0)
dict(zip(plan.data.actuator.values, swing.round(1)))  # peak to peak [V]

# %%
assert plan.ok and run.ok
assert executed > 0.9 * planned

# %% [markdown]
# `hamr.export_voltages(plan, "gait.csv", rate=2500)` writes the waveforms. Nine plans come with drakebots:
# `hamr.stored_plans()` lists them, `hamr.stored_plan("30hz_card")` reads one.
