"""Designing skins and skeletons: shapes, shells, templates, parts."""
