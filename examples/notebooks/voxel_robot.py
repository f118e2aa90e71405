# %% [markdown]
# # A voxel robot
#
# Lattices of octahedra whose edges are slender beams. They bend because neighbouring voxels tilt in alternation, and ten of
# them with four actuators walk.
#
# ![the walking robot](../../models/voxel/voxel.png)

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import matplotlib.pyplot as plt
import numpy as np

from drakebots import plan, record, simulate, voxels
from drakebots.lattice.frame import actuate, lattice_frame, solve_frame
from drakebots.lattice.pom import Control, PlanesOfMotion
from drakebots.lattice.shape import block, find_mechanisms

# %% [markdown]
# ## How can a lattice move?
#
# The motions that stretch no beam are the null space of the rigidity matrix. In a block they are the *planes of motion*:
# all voxels of a plane tilt together.

# %%
lattice = block(2, 2, 2)
print(find_mechanisms(lattice).report())

# %% [markdown]
# ## What does an actuator do?
#
# One actuator shortens the voxel between two nodes by 10 mm. The beam model gives the force and every displacement; planes of
# motion give the displacements from geometry alone.

# %%
frame = lattice_frame(lattice)
pair = lattice.node((2, 1, 1)), lattice.node((2, 1, 3))
solution = solve_frame(frame, *actuate(frame, [pair], [0.01]))
force = abs(np.asarray(solution.actuator_force)).max()
print(f"{force:.4f} N")

kinematics = PlanesOfMotion(lattice, [Control((2, 1, 1), "z")])
kinematics

# %% [markdown]
# ## Which actuators for a motion?
#
# The walking robot's foot is to move 5 mm forward. The kinematics are linear, so the answer is least squares.

# %%
reach = plan(voxels.Problem([voxels.Target("foot", "x", 5e-3)]))
print(dict(reach.metrics["actuator_mm"]), dict(reach.metrics["reached_mm"]))

# %% [markdown]
# ## It walks
#
# In Drake the voxels are rigid octahedra with ball joints between them and torsion springs for the beams' bending.

# %%
walk = simulate(voxels.Simulation(gait="forward", cycles=1))
walk

# %%
data = walk.data
figure, axis = plt.subplots(figsize=(8, 2.5), layout="constrained")
for actuator in data.actuator.values:
    axis.plot(
        data.time, 1e3 * data.actuator_length.sel(actuator=actuator), label=actuator
    )
axis.set(xlabel="time [s]", ylabel="length of the actuators [mm]")
axis.legend(ncols=4, frameon=False)
plt.show()

# %%
record(walk)

# %%
assert abs(force - 6.16558) < 1e-4  # N, as three other programs have it
assert (
    abs(reach.metrics["reached_mm"]["foot:x"] - 5) < 0.02
)  # of the elastic frame; the planes reach 5
assert walk.ok and 0.9 < walk.metrics["marker_slope_vs_pom"] < 1.05

# %% [markdown]
# The first cycle starts from rest and goes backwards; later ones go forwards. `voxels.search_gait(voxels.SearchProblem())`
# finds a gait that goes three times as far. [Voxel robots](../../docs/voxel.md) says when to trust which model.
