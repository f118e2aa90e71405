"""A skin glued to a skeleton: both solved at once, in one linear system a frame.

:class:`~drakebots.skin.glue.Glue` says which vertices are fixed to which link,
:mod:`~drakebots.skin.skeleton` takes the links' equations out of a Drake plant,
:mod:`~drakebots.skin.coupled` solves a frame of both, and
:mod:`~drakebots.skin.condensed` makes the frame an affine map of joint torques and
contact forces. :mod:`~drakebots.skin.multipliers` holds the paper's own systems.
"""
