"""In-hospital mortality from 48 hours of intensive care records; not in the paper."""
