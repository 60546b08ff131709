"""The models, one file each; `registry.py` has them by name."""
