# %% [markdown]
# # The monster's trot, by SNOPT and by ours
#
# The space-time program of a robot in a skin is a `MathematicalProgram` of Drake. Here our solver and Drake's SNOPT solve
# the same one, and it is alternated by hand with a step-by-step plan that simulates the whole elastic skin: the motion
# makes forces of the skin, the next program knows them.

# %%
# In a Python without drakebots: installs the clone that this notebook belongs to.
from importlib.util import find_spec

if find_spec("drakebots") is None:
    from IPython import get_ipython

    get_ipython().run_line_magic("pip", "install --quiet ../..")

# %%
import time

import matplotlib.pyplot as plt

from drakebots import quads, record

problem = quads.Problem("monster", "trot")
planner = quads.step_planner(problem)
coordinates = problem.robot.coordinates


def solved(program, solver):
    began = time.process_time()
    result = program.solve(solver, time_limit=900)
    details, seconds = result.get_solver_details(), time.process_time() - began
    print(
        f"{solver}: {details.status}, objective {details.objective:.6g} after "
        f"{details.iterations} iterations, {seconds:.1f} s of the processor"
    )
    assert result.is_success()
    return program.plan(result), details.objective


# %% [markdown]
# ## One program, two solvers
#
# From poses of inverse kinematics ours takes a second or two. SNOPT takes minutes from there, and seconds from an answer:
# `start` is a plan to begin with.

# %%
motion, cost = solved(problem.program().mathematical_program(), "exact")
program = problem.program().mathematical_program(start=motion)
again, other = solved(program, "snopt")
apart = quads.motion_difference(
    again.data.euler_position.values, motion.data.euler_position.values
)
print(f"objectives differ by {abs(other / cost - 1):.1e}, motions by {apart:.1e}")
assert abs(other / cost - 1) < 1e-4 and apart < 1e-2

# %% [markdown]
# ## In turn with the skin
#
# `quads.follow` plans step by step in the skin, `quads.skin_influence` is what the skin did on the way, and the next
# program takes both and starts from the motion before it. It ends where the two motions agree: the trot's do after the
# first iteration, since its program knows the stiffness of the skin at rest.

# %%
influence = follow = None
for k in range(problem.alternation.most):
    if k:
        program = problem.program(k, influence, follow)
        motion, _ = solved(program.mathematical_program(start=motion), "exact")
    steps = quads.follow(problem, motion, planner=planner)
    planned = [motion.data[f"euler_{n}"].values for n in ("position", "velocity")]
    planned.append(motion.data.euler_acceleration.values)
    reached = coordinates.from_positions(steps.data.position.values)
    difference = quads.motion_difference(reached, planned[0])
    print(f"{k + 1}: {steps.verdict}, difference {difference:.3g}", flush=True)
    if difference < problem.alternation.tolerance:
        break
    influence = quads.skin_influence(problem.robot, steps, planned)
    follow = planned[0]

# %%
assert steps.ok and difference < problem.alternation.tolerance
figure, axis = plt.subplots(figsize=(6, 3), layout="constrained")
for name, q, line in ("planned", planned[0], "-"), ("in the skin", reached, ":"):
    axis.plot(motion.data.time, 1e3 * q[:, 2], line, label=name)
axis.set(xlabel="time [s]", ylabel="height of the torso [mm]")
axis.legend(frameon=False)
plt.show()

# %%
record(steps)
