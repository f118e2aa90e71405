"""Models written for other tools: SDF for Drake, MJCF for MuJoCo, URDF for the rest."""
