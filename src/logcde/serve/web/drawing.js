/* What the plots of a series show besides lines: intervals, alerts, observations, labels of axes. */
/* global uPlot */
import {color, time} from "./common.js";

/* Every other query interval, shaded. */
export function drawIntervals(plots, plot) {
  const {min, max} = plot.scales.x,
    {events} = plots.model.interval;
  if (min == null) return;
  let ends = [];
  if (plots.drawable()) {
    const first = Math.max(0, Math.floor((min - plots.origin) / plots.length));
    for (let n = first; plots.origin + n * plots.length < max; n++) ends.push([n, plots.origin + n * plots.length]);
  } else if (events)
    ends = plots.events.filter(x => (x.number - 1) % events === 0).map(x => [(x.number - 1) / events, x.at]);
  clipped(plot, pen => {
    pen.fillStyle = color("--band");
    ends.forEach(([n, begin], place) => {
      const x = plot.valToPos(begin, "x", true),
        end = place + 1 < ends.length ? plot.valToPos(ends[place + 1][1], "x", true) : plot.bbox.left + plot.bbox.width;
      if (n % 2) pen.fillRect(x, plot.bbox.top, end - x, plot.bbox.height);
    });
  });
}

/* Thresholds, and where alerts were raised and cleared. */
export function drawAlerts(plots, plot) {
  const scale = uPlot.pxRatio,
    {left, width} = plot.bbox,
    y = value => plot.valToPos(value, "y", true);
  clipped(plot, pen => {
    pen.strokeStyle = color("--bad");
    pen.lineWidth = scale;
    for (const one of plots.thresholds())
      for (const side of ["raised", "cleared"]) {
        pen.setLineDash(side === "raised" ? [7 * scale, 4 * scale] : [scale, 4 * scale]);
        pen.beginPath();
        pen.moveTo(left, y(one[side]));
        pen.lineTo(left + width, y(one[side]));
        pen.stroke();
      }
    pen.setLineDash([]);
    for (const one of plots.alerts.filter(x => !plots.hidden.has(x.output))) {
      const x = plot.valToPos(time(one.time), "x", true),
        top = y(one.value),
        size = 5 * scale,
        sign = one.change === "raised" ? 1 : -1;
      pen.beginPath();
      pen.moveTo(x, top - sign * size);
      pen.lineTo(x - size, top + sign * size);
      pen.lineTo(x + size, top + sign * size);
      pen.closePath();
      pen.fillStyle = color(sign > 0 ? "--bad" : "--back");
      pen.fill();
      pen.stroke();
    }
  });
  const pen = plot.ctx,
    {min, max} = plot.scales.y,
    taken = [];
  pen.fillStyle = color("--bad");
  pen.font = `${11 * scale}px system-ui, sans-serif`;
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  for (const one of plots.thresholds())
    for (const side of ["raised", "cleared"]) {
      if (one[side] < min || one[side] > max || taken.some(other => Math.abs(other - y(one[side])) < 12 * scale))
        continue;
      taken.push(y(one[side]));
      pen.fillText(
        `${side === "raised" ? "▲" : "▽"} ${Number(one[side].toPrecision(4))}`,
        left + width + 6 * scale,
        y(one[side]),
      );
    }
}

/* Marks where a channel was observed, higher for larger values; and what attribution says of them. */
export function drawRaster(plots, plot) {
  const scale = uPlot.pxRatio,
    height = plots.lane() * scale,
    {left, width} = plot.bbox,
    top = plot.bbox.top;
  const most = plots.parts.reduce((a, x) => Math.max(a, Math.abs(x.amount)), 0) || 1;
  clipped(plot, pen =>
    plots.channels.forEach((name, place) => {
      const begin = top + place * height;
      pen.fillStyle = color("--line");
      pen.fillRect(left, begin + height - scale, width, scale);
      for (const part of plots.parts.filter(x => x.channel === name)) {
        const x = plot.valToPos(time(part.begin), "x", true),
          end = plot.valToPos(time(part.end), "x", true),
          wide = Math.max(end - x, 5 * scale);
        pen.globalAlpha = 0.12 + (0.6 * Math.abs(part.amount)) / most;
        pen.fillStyle = color(part.amount > 0 ? "--raises" : "--lowers");
        pen.fillRect(end - x < wide ? (x + end - wide) / 2 : x, begin + scale, wide, height - 2 * scale);
        pen.globalAlpha = 1;
      }
      const found = plots.events
        .filter(x => x.values[name] != null)
        .map(x => [plot.valToPos(x.at, "x", true), Number(x.values[name])]);
      const low = found.reduce((a, x) => Math.min(a, x[1]), Infinity),
        span = found.reduce((a, x) => Math.max(a, x[1]), -Infinity) - low;
      const dots = plots.lane() >= 18,
        dot = color("--fore"),
        tick = dots ? color("--tick") : color("--soft"),
        room = height - 10 * scale;
      for (const [x, value] of found) {
        pen.fillStyle = tick;
        pen.fillRect(Math.round(x - scale / 2), begin + 3 * scale, scale, height - 6 * scale);
        if (!dots) continue;
        pen.fillStyle = dot;
        pen.beginPath();
        pen.arc(x, begin + height - 5 * scale - (span ? (value - low) / span : 0.5) * room, 2 * scale, 0, 7);
        pen.fill();
      }
    }),
  );
}

function clipped(plot, draw) {
  const pen = plot.ctx,
    {left, top, width, height} = plot.bbox;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  draw(pen);
  pen.restore();
}

const DAY = "{D} {MMM}",
  CLOCK = "{HH}:{mm}";
/* Labels by the distance of two ticks: what each shows, and below it what the first of a year and of a day shows. */
export const LABELS = [
  [31536000, "{YYYY}", null, null, null],
  [2419200, "{MMM}", "\n{YYYY}", null, null],
  [86400, DAY, "\n{YYYY}", null, null],
  [60, CLOCK, `\n${DAY} {YYYY}`, null, `\n${DAY}`],
  [1, CLOCK + ":{ss}", `\n${DAY} {YYYY}`, null, `\n${DAY}`],
  [0.001, ":{ss}.{fff}", `\n${DAY} {YYYY}`, null, `\n${DAY}`],
].map(one => [...one, null, null, null, 1]);

/* A number of an axis. */
export function brief(value) {
  const size = Math.abs(value);
  return size >= 1e6 || (size > 0 && size < 1e-4) ? value.toExponential(1) : String(Number(value.toPrecision(8)));
}

/* Axes show the zone of the model's stamps, or UTC, which stamps without a zone are read in. */
export function zoned(seconds, zone) {
  const moment = new Date(seconds * 1000);
  try {
    return uPlot.tzDate(moment, zone || "Etc/UTC");
  } catch {
    return uPlot.tzDate(moment, "Etc/UTC");
  }
}
