"""Time, memory and accuracy with and without the Log-ODE method (`sec:log_ode_exp`)."""
