"""Signed distance fields made from skeletons, and a coarse robot, for the tests."""

from functools import cache

import numpy as np

from drakebots.design import design_robot, smooth, table1_problem


@cache
def coarse_beetle():
    """A beetle of 4000 vertices without teeth, designed once."""
    return design_robot(smooth(table1_problem("beetle", vertices=4000)))


def capsule_field(skeleton, radius=0.045, foot_margin=0.010, torso_margin=0.012):
    """A surface around a skeleton: capsules on limbs, boxes on feet and torso."""
    limbs = [
        link
        for link in skeleton.links
        if link.parent is not None and not link.name.endswith("_foot")
    ]
    A = np.array([link.p_WA for link in limbs])
    E = np.array([link.p_WB - link.p_WA for link in limbs])
    boxes = []
    for sole in skeleton.soles:
        middle = skeleton.link(sole.link).origin + sole.p_BP[4]
        high = -sole.p_BP[4, 2]
        half = [*(np.array(sole.size) / 2 + foot_margin), high / 2]
        boxes.append((middle + np.array([0, 0, high / 2]), half))
    torso = skeleton.links[0]
    corners = np.concatenate([torso.origin + s.corners() for s in torso.solids])
    low, high = corners.min(axis=0), corners.max(axis=0)
    boxes.append(((low + high) / 2, (high - low) / 2 + torso_margin))

    def field(points):
        r = points[:, None, :] - A
        s = np.clip(np.einsum("nki,ki->nk", r, E) / np.square(E).sum(axis=1), 0, 1)
        d = np.linalg.norm(r - s[..., None] * E, axis=2).min(axis=1) - radius
        for centre, half in boxes:
            q = np.abs(points - centre) - half
            outside = np.linalg.norm(np.maximum(q, 0), axis=1)
            d = np.minimum(d, outside + np.minimum(q.max(axis=1), 0))
        return d

    return field


def surface_points(field, low, high, count, seed=1, near=0.03):
    """Random points moved along the field's gradient onto its surface."""
    random = np.random.default_rng(seed)
    step = 1e-6 * np.eye(3)
    found = np.zeros((0, 3))
    while len(found) < count:
        p = random.uniform(low, high, (60_000, 3))
        p = p[np.abs(field(p)) < near]
        for _ in range(4):
            f = field(p)
            slope = np.stack([(field(p + h) - f) / 1e-6 for h in step], axis=1)
            p = p - f[:, None] * slope
        found = np.concatenate([found, p[np.abs(field(p)) < 1e-4]])
    return found[:count]
