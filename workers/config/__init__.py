"""The YAML file: read, checked, turned into specs. pydantic lives here and goes no further."""

from __future__ import annotations

from workers.config.document import Config, default_config
from workers.config.files import check_config, check_servable
from workers.config.problems import ConfigError, Problem
from workers.config.reading import load_config, read_config

__all__ = [
    "Config",
    "ConfigError",
    "Problem",
    "check_config",
    "check_servable",
    "default_config",
    "load_config",
    "read_config",
]
