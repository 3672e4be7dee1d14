"""Time this library against every peer that is installed: `python -m benchmarks`.

A job (`jobs`) makes cases; a case (`cases`) is one computation with several contenders; `timing` measures them in
turns, `results` stores the measurements and `report` shows them. A peer (`peers`) is imported only when it runs.
"""
