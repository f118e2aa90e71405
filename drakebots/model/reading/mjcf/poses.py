"""The <keyframe> of an MJCF file as joint positions."""

from __future__ import annotations

from drakebots.core.errors import InvalidInput
from drakebots.model.reading.mjcf.bodies import WIDTHS, Tree
from drakebots.model.reading.mjcf.tree import Element


def read_poses(root: Element, tree: Tree) -> dict[str, dict[str, float]]:
    """Joint positions by the name of a key, then of a joint [rad, m].

    A key's qpos has 7 entries for a free joint, 4 for a ball joint and 1 for others, in
    the order of the file. Drake's positions are 0 at the reference configuration,
    where qpos is the joint's `ref`. Poses of bodies and ball joints are left out.

    Args:
        root: the <mujoco>.
        tree: its bodies.

    Raises:
        InvalidInput: for a qpos of another length.
    """
    joints = [joint for body in tree.bodies for joint in body.joints]
    total = sum(WIDTHS[joint.kind] for joint in joints)
    keys = [key for frame in root.all("keyframe") for key in frame.all("key")]
    poses = {}
    for index, key in enumerate(keys):
        values = key.numbers("qpos")
        if not values:
            continue  # MuJoCo's default: the reference configuration
        if len(values) != total:
            raise InvalidInput(
                f"{key}: qpos has {len(values)} numbers; its joints have {total}"
            )
        pose, start = {}, 0
        for joint in joints:
            if joint.kind in ("hinge", "slide"):
                pose[joint.name] = values[start] - joint.ref
            start += WIDTHS[joint.kind]
        poses[key.get("name") or f"key{index}"] = pose
    return poses
