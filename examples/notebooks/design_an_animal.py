# %% [markdown]
# # Design an animal
#
# From a closed surface to a robot that can be built: a skeleton fitted into it, a skin with folds at the joints, glue, moulds
# and parts. `dog.stl` is a surface of ours; any closed STL, OBJ or PLY will do.
#
# ![the pieces that a skin is cast in](../../docs/design_pieces.png)

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
from pathlib import Path
from tempfile import mkdtemp

import matplotlib.pyplot as plt

from drakebots import record
from drakebots.design import design_robot, read_design, write_design
from drakebots.skin import SkinSimulation, simulate_skinned

# %% [markdown]
# ## The problem
#
# A surface, a template whose skeleton is fitted into it, and the skin: 6000 vertices, a wall of 4 mm, 140 glued vertices.

# %%
print(Path("../design.yaml").read_text())
problem = read_design("../design.yaml")

# %% [markdown]
# ## The design
#
# The surface's signed distance on a grid, the fit, the wall of tetrahedra, the glue: about 45 s of processor time.

# %%
design = design_robot(problem)
report = design.report()
for name in (
    "joints",
    "skin_vertices",
    "glue_vertices",
    "mass_kg",
    "size_m",
    "wall_m",
    "notes",
):
    print(name, report[name])

# %% [markdown]
# ## Look at it

# %%
mesh = design.shell.mesh
figure, axis = plt.subplots(figsize=(7, 4), subplot_kw={"projection": "3d"})
axis.scatter(*mesh.vertices.T, s=1, c="#c9b27a")
for glued in design.glue.values():
    axis.scatter(*mesh.vertices[glued].T, s=8, c="#c0182a")
axis.set(xlabel="x [m]", ylabel="y [m]", zlabel="z [m]", aspect="equal")
axis.view_init(15, -60)
plt.show()

# %% [markdown]
# The red points are glued to links. `drakebots design beetle -o out/` also makes pictures, moulds and parts.
#
# ## Simulate it
#
# `write_design` writes a model folder as those of `models/`; the robot stands in its skin for a moment.

# %%
path = write_design(design, Path(mkdtemp()))
result = simulate_skinned(SkinSimulation(model=path, motion="hold", duration=0.05))
print(result.summary())
record(result)

# %%
assert report["inverted"] == 0 and report["joints"] == 16
assert result.ok

# %% [markdown]
# [Designing skinned quad-robots](../../docs/design.md) has the stages and options, [its evidence](../../docs/evidence/design.md)
# Table 1 of the paper, and what the skin costs the motors.
