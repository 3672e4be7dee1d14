"""Speed, side by side with every peer that is installed: `python -m benchmarks`.

A job (`jobs`) makes cases; a case is one question with several contenders; `timing` lets them answer it in turns;
`results` keeps what was measured and `report` and `plot` show it. Peers (`peers`) are imported only when they run.
"""
