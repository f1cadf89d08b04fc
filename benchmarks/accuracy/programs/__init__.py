"""The programs, by topic.  Importing this package fills the table; it imports TensorFlow."""

from __future__ import annotations

import importlib
import pkgutil

for _module in pkgutil.iter_modules(__path__):
    importlib.import_module(f"{__name__}.{_module.name}")
