"""The <equality> of an MJCF file: which of its bodies it joins to closed loops."""

from __future__ import annotations

import numpy as np
from pydrake.math import RigidTransform

from drakebots.core.errors import InvalidInput
from drakebots.model.loops import Loop
from drakebots.model.reading.mjcf.bodies import Tree
from drakebots.model.reading.mjcf.compiler import Compiler, is_true
from drakebots.model.reading.mjcf.tree import Element

ROWS = {"connect": "ball", "weld": "weld"}
"""The kind of loop that an equality closes."""


def read_loops(root: Element, tree: Tree, compiler: Compiler) -> tuple[Loop, ...]:
    """The loops that `connect` and `weld` close; others are counted as left out.

    Args:
        root: the <mujoco>.
        tree: its bodies.
        compiler: its settings.

    Raises:
        InvalidInput: for a body or a site that does not exist.
    """
    loops: list[Loop] = []
    for equality in root.all("equality"):
        for element in equality.children:
            if element.tag not in ROWS:
                tree.leave_out(f"<equality> of type {element.tag}")
            elif not is_true(element, "active", True):
                tree.leave_out("<equality> that is not active")
            else:
                loops.append(_loop(element, tree, compiler, len(loops)))
    return tuple(loops)


def _loop(element: Element, tree: Tree, compiler: Compiler, count: int) -> Loop:
    if element.get("site1"):
        (A, X_AP), (B, X_BQ) = (_site(tree, element, key) for key in ("site1", "site2"))
    else:
        (A, X_AP), (B, X_BQ) = _bodies(element, tree, compiler)
    R_AP, R_BQ = X_AP.rotation().matrix(), X_BQ.rotation().matrix()
    return Loop(
        name=element.get("name") or f"{element.tag}{count + 1}",
        body_A="world" if A is None else A.name,
        body_B="world" if B is None else B.name,
        p_AP=X_AP.translation(),
        p_BQ=X_BQ.translation(),
        axis_A=R_AP[:, 2],
        axis_B=R_BQ[:, 2],
        side_A=R_AP[:, 0],
        side_B=R_BQ[:, 0],
        rows=ROWS[element.tag],
    )


def _site(tree: Tree, element: Element, key: str):
    """The body of a site, None for the world, and the site's pose in it."""
    name = element.get(key)
    if name in tree.sites:
        return None, tree.sites[name]
    for body in tree.bodies:
        if name in body.sites:
            return body, body.sites[name]
    raise InvalidInput(f"{element}: there is no site {name!r}; correct {key}")


def _bodies(element: Element, tree: Tree, compiler: Compiler):
    """Two bodies, None for the world, with the frame of the joint in each.

    The anchor of a `connect` is in body 1, that of a `weld` in body 2. What is not
    given is so that the loop is closed at the reference configuration.
    """
    A = tree.body(element.get("body1"))
    B = tree.body(element.get("body2")) if element.get("body2") else None
    X_WA, X_WB = A.X_WB, RigidTransform() if B is None else B.X_WB
    X_AB = X_WA.InvertAndCompose(X_WB)
    if element.tag == "connect":
        anchor = np.array(element.vector("anchor", 3, ""))
        X_AP = RigidTransform(anchor)
        if compiler.is_global:
            X_AP = RigidTransform(X_WA.inverse().multiply(anchor))
        return (A, X_AP), (B, X_AB.InvertAndCompose(X_AP))
    X_BQ = RigidTransform(element.vector("anchor", 3, "0 0 0"))
    relative = element.vector("relpose", 7, "0 1 0 0 0 0 0")
    if any(relative[3:]):
        pose = {"pos": relative[:3], "quat": relative[3:]}
        texts = {key: " ".join(map(repr, value)) for key, value in pose.items()}
        X_AB = compiler.pose(Element("relpose", texts))
    return (A, X_AB @ X_BQ), (B, X_BQ)
