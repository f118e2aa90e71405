"""The elastic skin: tetrahedral finite elements without Drake.

A :class:`~drakebots.fem.mesh.mesh.TetMesh` and materials make a
:class:`~drakebots.fem.assembly.assembly.FemModel`; its energy, force and tangent feed a
sparse solver and the time steps of :mod:`drakebots.fem.dynamics`.
"""
