"""Classification of the UEA data sets with dropped observations (`tab:uea_drop_summary`, `app:uea-experiments`)."""
