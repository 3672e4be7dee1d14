"""Figures. Matplotlib is an optional extra and is imported only when something is drawn."""

from logcde.plot.learning import against as against
from logcde.plot.learning import curves as curves
from logcde.plot.learning import dots as dots
from logcde.plot.learning import dropping as dropping
from logcde.plot.learning import heatmap as heatmap
from logcde.plot.learning import history as history
from logcde.plot.learning import predictions as predictions
from logcde.plot.outcomes import agreement as agreement
from logcde.plot.outcomes import attributions as attributions
from logcde.plot.outcomes import forecast as forecast
from logcde.plot.outcomes import hours as hours
from logcde.plot.outcomes import reliability as reliability
from logcde.plot.outcomes import residuals as residuals
from logcde.plot.streams import intervals as intervals
from logcde.plot.streams import kept as kept
from logcde.plot.streams import observations as observations
from logcde.plot.streams import overview as overview
from logcde.plot.streams import path as path
from logcde.plot.streams import raster as raster
from logcde.plot.streams import rasters as rasters
from logcde.plot.style import COLOURS as COLOURS
from logcde.plot.style import as_svg as as_svg
from logcde.plot.style import figure_of as figure_of
from logcde.plot.style import save as save
