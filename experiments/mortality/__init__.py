"""Death in hospital, PhysioNet 2012, on the splits that published comparisons share."""
