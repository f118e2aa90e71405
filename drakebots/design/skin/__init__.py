"""Skins: bodies around a skeleton, folding regions, walls of tets.

A body is folded at the joints and hollowed to a wall:

    folds = joint_folds(skeleton, skin.folds)
    shell, notes = fold_and_hollow(grid, skeleton, folds, skin)
"""

from typing import TYPE_CHECKING

from drakebots.core.lazy import lazy_face

if TYPE_CHECKING:
    from drakebots.design.skin.fold import (
        COVER,
        SPREAD,
        FoldSettings,
        JointFold,
        joint_folds,
        teeth,
        with_cuffs,
    )
    from drakebots.design.skin.hollow import (
        SOFT,
        SkinSettings,
        SoftBall,
        fold_and_hollow,
        fold_moduli,
        in_folds,
        region_materials,
        with_regions,
    )
    from drakebots.design.skin.shell import Shell

__all__, __getattr__, __dir__ = lazy_face(__name__)
