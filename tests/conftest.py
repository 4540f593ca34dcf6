"""Hypothesis tries the same examples every time, and new ones when it is told to explore."""

import os

from hypothesis import settings

settings.register_profile("repeat", derandomize=True)
if "MOLDAU_EXPLORE" not in os.environ:
    settings.load_profile("repeat")
