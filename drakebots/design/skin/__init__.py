"""Skins: bodies around a skeleton, folding regions, walls of tets.

A body is folded at the joints and hollowed to a wall:

    folds = joint_folds(skeleton, skin.folds)
    shell, notes = fold_and_hollow(grid, skeleton, folds, skin)
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.skin.bodies import body_named
    from drakebots.design.skin.fold import (
        FoldSettings,
        JointFold,
        joint_folds,
        with_cuffs,
    )
    from drakebots.design.skin.hollow import (
        SOFT,
        SkinSettings,
        SoftBall,
        fold_and_hollow,
        in_folds,
        region_materials,
        with_regions,
    )
    from drakebots.design.skin.shell import Shell, wall_surfaces

__all__, __getattr__, __dir__ = lazy_face(__name__)
