"""Sepsis hour by hour, PhysioNet/CinC Challenge 2019: between hospitals, and random splits of both."""
