"""Voxel lattices of cuboctahedra, without Drake: shape, beam frame, planes of motion.

- `drakebots.lattice.shape`: voxels, nodes and beams; files; mechanisms;
- `drakebots.lattice.frame`: the frame of beams, linear finite elements;
- `drakebots.lattice.pom`: planes of motion, their kinematics and their validity.

Source: Tebyani, Spaeth, Cramer, Teodorescu, "A Geometric Kinematic Model for Flexible
Voxel-Based Robots" (2022); docs/voxel.md.
"""
