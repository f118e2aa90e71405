"""Skinned quadrupeds: planning their motion."""
