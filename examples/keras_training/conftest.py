"""Its being here lets the tests, those in ``regression/`` too, import ``model``."""
