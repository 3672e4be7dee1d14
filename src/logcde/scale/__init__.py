"""Whole folders of files: a plan is a function of Arrow tables that an engine, such as Ray, calls for each part."""

from logcde.scale.plan import Layout as Layout
from logcde.scale.plan import Plan as Plan
from logcde.scale.plan import plan as plan
