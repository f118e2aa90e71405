"""Robots of USD stages as elements of MuJoCo's models."""
