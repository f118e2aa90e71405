# %% [markdown]
# # A skin on a leg
#
# A leg of two servos in a tube of silicone. Skeleton and skin are solved together, in one linear system per time step.
#
# ![the knee in its skin](../../docs/skin_leg.png)

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt

from drakebots import record
from drakebots.skin import SkinSimulation, simulate_skinned
from drakebots.skin.file import GlueRadius, attach

# %% [markdown]
# ## Bend it
#
# The servos follow sines of 0.4 rad, the knee a quarter period behind the hip. The skin is silicone of 0.8 MPa, in 2210
# vertices; 192 of them are glued to the links.

# %%
problem = SkinSimulation(model="skinned_leg", motion="sine", period=0.5, duration=0.2)
result = simulate_skinned(problem)
result

# %%
record(result)

# %% [markdown]
# The colours are von Mises stress. The scene plays the vertices of the skin as they moved.
#
# ## What it costs the motors

# %%
data = result.data
figure, axis = plt.subplots(figsize=(8, 2.5), layout="constrained")
for joint in data.joint.values:
    axis.plot(data.time, data.torque.sel(joint=joint), label=joint)
axis.set(xlabel="time [s]", ylabel="torque of the servos [N m]")
axis.legend(frameon=False)
plt.show()

# %% [markdown]
# ## A skin of your own
#
# Any mesh of tetrahedra around any skeleton. `attach` glues the vertices near each link and says what it found.

# %%
found = attach("../skeleton.urdf", "../skin.vtk", GlueRadius(0.005))
found.report()

# %% [markdown]
# "Locking" is a warning: first-order tetrahedra are too stiff in bending where the wall is one element thick.
# [Elastic skins](../../docs/skin.md) says when that matters, and how to go on with a skin of your own.

# %%
assert result.ok
assert result.metrics["worst_volume_ratio"] > 0.8  # no tetrahedron came near collapse
assert result.metrics["tracking_error_rad"] < 0.2
