"""Forecasts of the next 24 hours in intensive care, PhysioNet 2012, as t-PatchGNN and others are compared."""
