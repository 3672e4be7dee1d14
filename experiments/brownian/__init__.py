"""A linear system driven by Brownian rough paths, learnt with and without Levy areas (`sec:bm_results`)."""
