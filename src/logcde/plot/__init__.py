"""Figures. Matplotlib is an optional extra, imported only when a figure is drawn.

Functions draw on given axes and return them; `figure_of` makes the figure, `save` writes it.
"""

# ruff: isort: off
from logcde.plot.style import COLOURS as COLOURS
from logcde.plot.style import figure_of as figure_of
from logcde.plot.style import save as save
from logcde.plot.style import as_svg as as_svg
from logcde.plot.streams import overview as overview
from logcde.plot.streams import observations as observations
from logcde.plot.streams import channel_raster as channel_raster
from logcde.plot.streams import series_raster as series_raster
from logcde.plot.streams import intervals as intervals
from logcde.plot.streams import logsig_heatmap as logsig_heatmap
from logcde.plot.streams import realised_path as realised_path
from logcde.plot.training import history as history
from logcde.plot.training import loss_curves as loss_curves
from logcde.plot.outcomes import predictions as predictions
from logcde.plot.outcomes import forecast as forecast
from logcde.plot.outcomes import parity as parity
from logcde.plot.outcomes import residuals as residuals
from logcde.plot.outcomes import reliability as reliability
from logcde.plot.outcomes import attributions as attributions
from logcde.plot.comparisons import heatmap as heatmap
from logcde.plot.comparisons import loglog_errorbars as loglog_errorbars
from logcde.plot.comparisons import drop_curve as drop_curve
from logcde.plot.comparisons import scores_over_time as scores_over_time
from logcde.plot.comparisons import strip as strip
