"""The elastic skin: tetrahedral finite elements without Drake.

A :class:`~drakebots.fem.mesh.TetMesh` and materials make a
:class:`~drakebots.fem.assembly.FemModel`; its energy, force and tangent feed a
sparse solver and the time steps of :mod:`drakebots.fem.dynamics`.
"""
