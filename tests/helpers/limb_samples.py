"""A soft limb, and plants that carry some."""

from __future__ import annotations

import numpy as np
from pydrake.multibody.plant import (
    MultibodyPlant,
)

from drakebots.formats import add_limbs, load
from drakebots.multibody import Limb, couple_joints

TAIL = {
    "name": "tail",
    "parent": "brick",
    "length": 0.1,
    "stiffness": 0.2,
    "mass": 0.04,
    "radius": 0.008,
    "damping": 0.01,
}


def limb(**changes) -> Limb:
    return Limb(**(TAIL | changes))


def plant_with(limbs, model="brick", *, welded=False, coupled=False):
    plant = MultibodyPlant(1e-3)
    load(model).add_to(plant)
    add_limbs(plant, limbs)
    if coupled:
        couple_joints(plant, limbs)
    if welded:
        plant.WeldFrames(plant.world_frame(), plant.GetFrameByName("brick"))
    plant.mutable_gravity_field().set_gravity_vector(np.zeros(3))
    plant.Finalize()
    return plant
