"""Fleets and traffic by discrete events; the policies inside are the ones that serve."""

from __future__ import annotations
