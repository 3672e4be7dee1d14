"""Whole folders of files: a plan is a function of Arrow tables that an engine, such as Ray, calls for each part."""

from logcde.scale.plans import Layout as Layout
from logcde.scale.plans import Plan as Plan
from logcde.scale.plans import plan as plan
