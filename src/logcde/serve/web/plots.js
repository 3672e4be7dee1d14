/* Two plots of one series above each other, on one axis of time: its predictions, and its observations by channel. */
/* global uPlot */
import {at, color, intervals, make, measured, number, outputsOf, shownStamp, time, visible} from "./common.js";
import {brief, drawAlerts, drawIntervals, drawRaster, LABELS, zoned} from "./drawing.js";

const NARROW = 560,
  FONT = "11px system-ui, sans-serif";
const LINES = ["--mark", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6"];

export class Plots {
  constructor() {
    this.made = [];
    this.hidden = new Set();
    this.view = null;
    this.built = "";
    this.parts = [];
    at("nearer").addEventListener("click", () => this.zoom(0.5));
    at("farther").addEventListener("click", () => this.zoom(2));
    at("whole").addEventListener("click", () => this.reset());
    at("plots").addEventListener("keydown", event => this.pressed(event));
    new ResizeObserver(() => this.resize()).observe(at("plots"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.built = "";
      if (this.one) this.draw();
    });
  }

  /* Another series: everything is shown, with the outputs that alerts and the order of the list rest on. */
  begin(model) {
    const wanted = new Set([model.risk, ...model.alerts.map(one => one.output)]);
    const few = model.outputs.length <= 3 && !(model.outputs.length === 2 && wanted.size === 1);
    this.hidden = new Set(few ? [] : model.outputs.filter(name => !wanted.has(name)));
    this.model = model;
    this.view = null;
    this.parts = [];
    this.built = "";
  }

  /* Show a series: its answer, predictions without observations [{time, prediction}], and its alerts. */
  show(one, between, alerts) {
    this.one = one;
    this.alerts = alerts.filter(x => Number.isFinite(time(x.time)));
    this.events = one.history
      .map(x => ({...x, at: time(x.time)}))
      .filter(x => Number.isFinite(x.at))
      .sort((a, b) => a.at - b.at);
    const made = [
      ...between,
      ...one.history
        .filter(x => "predicted" in x)
        .map(x => ({time: x.predicted, prediction: x.prediction, beside: x.beside})),
    ];
    if (one.prediction !== null) made.push({time: one.time, prediction: one.prediction, beside: one.beside});
    const points = new Map(made.map(x => [time(x.time), x]).filter(([t]) => Number.isFinite(t)));
    this.times = [...points.keys()].sort((a, b) => a - b);
    this.points = this.times.map(t => ({
      ...points.get(t),
      outputs: outputsOf(points.get(t).prediction, this.model.outputs),
    }));
    this.outputs = this.model.outputs;
    const seen = new Set(one.history.flatMap(x => Object.keys(x.values).filter(name => x.values[name] !== null)));
    this.channels = this.model.channels.filter(name => seen.has(name));
    this.unseen = this.model.channels.length - this.channels.length;
    const all = [...this.times, ...this.events.map(x => x.at)];
    const low = all.reduce((a, b) => Math.min(a, b), Infinity),
      high = all.reduce((a, b) => Math.max(a, b), -Infinity);
    const margin = (high - low) * 0.015 || 0.5;
    this.all = all.length ? {min: low - margin, max: high + margin} : {min: 0, max: 1};
    const scale = this.model.clock.stamps === "datetimes" ? this.model.clock.seconds : 1;
    this.length = this.model.interval.length * scale;
    this.origin = time(one.observed) - one.elapsed * scale;
    this.draw();
  }

  draw() {
    const wants = JSON.stringify([this.outputs, this.channels, this.bounded(), this.besides(), this.lane()]);
    if (wants !== this.built) {
      this.build();
      this.built = wants;
    } else this.made.forEach((plot, place) => plot.setData(place ? this.rasterData() : this.lineData(), false));
    this.range(this.view || this.all);
    this.made.forEach(plot => plot.redraw(false, false));
    this.label();
    this.look(this.seen, this.near); // until the cursor is read anew
  }

  bounded() {
    return this.outputs.filter(name => this.points.some(x => x.outputs.get(name)?.lower != null));
  }
  besides() {
    return this.points.some(x => besideRisk(x) !== null);
  }
  lane() {
    return this.channels.length > 30 ? 15 : this.channels.length > 14 ? 18 : 26;
  }
  lineData() {
    const column = (name, side) => this.points.map(x => x.outputs.get(name)?.[side] ?? null);
    const bounds = this.bounded().flatMap(name => [column(name, "upper"), column(name, "lower")]);
    const besides = this.besides() ? [this.points.map(besideRisk)] : [];
    return [this.times, ...this.outputs.map(name => column(name, "value")), ...bounds, ...besides];
  }
  rasterData() {
    const times = this.events.map(x => x.at);
    return [times, times.map(() => null)];
  }

  build() {
    this.made.forEach(plot => plot.destroy());
    this.made = [];
    this.seen = null;
    const tint = name => color(this.line(name)),
      few = this.times.length < 80;
    const series = [
      {},
      ...this.outputs.map(name => ({
        stroke: tint(name),
        width: 1.5,
        show: !this.hidden.has(name),
        points: {show: few, size: 4, fill: tint(name)},
      })),
    ];
    const bands = [];
    for (const name of this.bounded()) {
      bands.push({series: [series.length, series.length + 1], fill: tint(name) + "22"});
      for (let side = 0; side < 2; side++) series.push({width: 0, show: !this.hidden.has(name), points: {show: false}});
    }
    if (this.besides()) series.push({stroke: color("--soft"), width: 1, dash: [5, 4], points: {show: false}});
    const raster = {
      scales: {y: {range: [0, 1]}},
      series: [{}, {points: {show: false}}],
      cursor: {points: {show: false}},
    };
    raster.axes = [
      this.axis(true),
      {...this.axis(false), grid: {show: false}, values: (plot, splits) => splits.map(() => "")},
    ];
    const lines = {
      scales: {y: {range: (plot, low, high) => this.extent()}},
      series,
      bands,
      cursor: {points: {size: 5}},
      padding: [8, this.gutters()[1], 0, 0],
    };
    lines.axes = [{...this.axis(true), size: 6, values: (plot, splits) => splits.map(() => "")}, this.axis(false)];
    raster.hooks = {drawClear: [plot => drawIntervals(this, plot)], draw: [plot => drawRaster(this, plot)]};
    lines.hooks = {drawClear: [plot => drawIntervals(this, plot)], draw: [plot => drawAlerts(this, plot)]};
    at("raster").replaceChildren();
    at("predicted").replaceChildren();
    this.made = [
      new uPlot(this.options(lines, this.heights()[0]), this.lineData(), at("predicted")),
      new uPlot(this.options(raster, this.heights()[1]), this.rasterData(), at("raster")),
    ];
    this.lanes = this.channels.map((name, place) => {
      const lane = make(
        "div",
        {class: "lane"},
        make("span", {text: visible(name), title: visible(name)}),
        make("span", {class: "figure"}),
      );
      lane.style.top = place * this.lane() + "px";
      lane.style.height = this.lane() + "px";
      this.gutters().forEach((width, side) => {
        lane.children[side].style.width = width - 8 + "px";
      });
      at("raster").append(lane);
      return lane;
    });
  }

  /* The output by which the list is sorted has the first color. */
  line(name) {
    const others = this.outputs.filter(one => one !== this.model.risk);
    return LINES[name === this.model.risk ? 0 : 1 + (others.indexOf(name) % (LINES.length - 1))];
  }
  heights() {
    return [at("plots").clientWidth < NARROW ? 150 : 190, this.channels.length * this.lane() + this.below()];
  }
  below() {
    return this.model.clock.stamps === "datetimes" ? 42 : 28;
  }
  gutters() {
    return at("plots").clientWidth < NARROW ? [62, 62] : [92, 84];
  }
  axis(along) {
    const line = {stroke: color("--line"), width: 1};
    const axis = {stroke: color("--soft"), font: FONT, grid: along ? {show: false} : line, ticks: {...line, size: 4}};
    if (!along)
      return {
        ...axis,
        size: this.gutters()[0],
        gap: 4,
        ticks: {show: false},
        values: (plot, splits) => splits.map(brief),
      };
    return {
      ...axis,
      size: this.below(),
      space: 70,
      ...(this.model.clock.stamps === "datetimes" ? {values: LABELS} : {}),
    };
  }
  options(own, height) {
    const {stamps, zone} = this.model.clock;
    return {
      width: at("plots").clientWidth,
      height,
      padding: [0, this.gutters()[1], 0, 0],
      legend: {show: false},
      tzDate: seconds => zoned(seconds, zone),
      ...own,
      scales: {x: {time: stamps === "datetimes"}, ...own.scales},
      cursor: {
        ...own.cursor,
        y: false,
        drag: {x: true, y: false, dist: 5},
        sync: {
          key: "series",
          scales: ["x", null],
          filters: {pub: kind => kind === "mousemove" || kind === "mouseleave"},
        },
        bind: {
          dblclick: () => () => {
            this.reset();
            return null;
          },
        },
      },
      hooks: {
        ...own.hooks,
        setScale: [
          (plot, name) => {
            if (name === "x") this.moved(plot);
          },
        ],
        setCursor: [plot => this.pointed(plot)],
      },
    };
  }
  resize() {
    if (!this.made.length || !at("plots").clientWidth || at("plots").clientWidth === this.made[0].width) return;
    this.built = "";
    this.draw();
  }

  /* The numbers that are seen, with thresholds and the model beside where these are not far. Probabilities are from 0 to 1. */
  extent() {
    const shown = this.outputs.filter(name => !this.hidden.has(name));
    const values = this.points
      .flatMap(x => shown.flatMap(name => Object.values(x.outputs.get(name) || {})))
      .filter(Number.isFinite);
    if (this.one.prediction?.probabilities) return [-0.02, 1.02];
    if (!values.length) return [0, 1];
    const least = values.reduce((a, b) => Math.min(a, b)),
      most = values.reduce((a, b) => Math.max(a, b)),
      span = most - least || Math.abs(most) || 1;
    const others = [...this.thresholds().flatMap(one => [one.raised, one.cleared]), ...this.points.map(besideRisk)];
    const near = others.filter(one => one !== null && one > least - span && one < most + span);
    const low = near.reduce((a, b) => Math.min(a, b), least),
      high = near.reduce((a, b) => Math.max(a, b), most),
      margin = (high - low || span) * 0.08;
    return [low - margin, high + margin];
  }
  thresholds() {
    return this.model.alerts.filter(one => !this.hidden.has(one.output));
  }

  /* Zoom: both plots show the same times. */
  range({min, max}) {
    this.made.forEach(plot => plot.setScale("x", {min, max}));
  }
  moved(plot) {
    const {min, max} = plot.scales.x;
    if (min == null || this.made.length < 2 || this.setting) return;
    this.view =
      Math.abs(min - this.all.min) + Math.abs(max - this.all.max) < 1e-9 * (this.all.max - this.all.min)
        ? null
        : {min, max};
    at("whole").disabled = this.view === null;
    this.setting = true;
    for (const other of this.made)
      if (other !== plot && (other.scales.x.min !== min || other.scales.x.max !== max)) other.setScale("x", {min, max});
    this.setting = false;
  }
  reset() {
    this.range(this.all);
  }
  zoom(factor) {
    const {min, max} = this.view || this.all,
      middle = this.seen ?? (factor < 1 ? max : (min + max) / 2);
    const low = Math.max(this.all.min, middle - (middle - min) * factor),
      high = Math.min(this.all.max, middle + (max - middle) * factor);
    if (high > low) this.range({min: low, max: high});
  }
  pressed(event) {
    if (event.key === "+" || event.key === "-") this.zoom(event.key === "+" ? 0.5 : 2);
    else if (event.key === "0") this.reset();
    else if (["ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key) && this.events.length) {
      const times = this.events.map(x => x.at),
        last = times.length - 1,
        now = this.seen ?? Infinity;
      const step = {
        ArrowLeft: times.findLastIndex(t => t < now),
        ArrowRight: times.findIndex(t => t > now),
        Home: 0,
        End: last,
      }[event.key];
      const t = times[step < 0 ? (event.key === "ArrowLeft" ? 0 : last) : step];
      this.made.forEach(plot => plot.setCursor({left: plot.valToPos(t, "x"), top: 10}, false));
      this.look(t);
    } else return;
    event.preventDefault();
  }
  pointed(plot) {
    const {left} = plot.cursor;
    this.look(left >= 0 ? plot.posToVal(left, "x") : null, plot.posToVal(4, "x") - plot.posToVal(0, "x"));
  }

  /* Say what there is at a time: of each channel the last value until then. Without a time, at the end. */
  look(t, near = 0) {
    this.seen = t;
    this.near = near;
    const until = (t ?? Infinity) + near;
    const place = this.events.findLastIndex(x => x.at <= until),
      event = this.events[place];
    const hit = event && t !== null && Math.abs(event.at - t) <= near + 1e-12 * Math.abs(t);
    this.channels.forEach((name, lane) => {
      const found = this.events.findLast(x => x.at <= until && x.values[name] != null),
        cell = this.lanes[lane].lastChild;
      cell.textContent = found ? measured(found.values[name]) : "";
      cell.title = found ? `${found.values[name]} at ${shownStamp(found.time)}` : "";
      cell.classList.toggle("now", Boolean(hit) && found === event);
    });
    const point = this.points[this.times.findLastIndex(x => x <= until)];
    for (const [name, cell] of this.cells || []) cell.textContent = number(point?.outputs.get(name)?.value);
    const stamp = hit ? event.time : point?.time;
    at("readout").textContent =
      t === null || stamp === undefined
        ? ""
        : hit
          ? `observed at ${shownStamp(stamp)}`
          : `after the prediction for ${shownStamp(stamp)}`;
  }

  /* The legend shows and hides outputs. */
  label() {
    this.cells = new Map();
    at("legend").replaceChildren(
      ...this.outputs.map((name, place) => {
        const cell = make("span", {class: "figure"}),
          swatch = make("i", {"aria-hidden": "true"});
        swatch.style.background = color(this.line(name));
        this.cells.set(name, cell);
        const button = make(
          "button",
          {class: "chip", "aria-pressed": String(!this.hidden.has(name))},
          swatch,
          make("span", {text: visible(name)}),
          cell,
        );
        button.addEventListener("click", () => {
          if (!this.hidden.delete(name)) this.hidden.add(name);
          this.built = "";
          this.draw();
          at("legend").children[place].focus();
        });
        return button;
      }),
    );
    const {model, one} = this,
      rule = intervals(model);
    at("key").textContent = [
      rule &&
        `Shading: every other query interval (${rule}${model.interval.length && !this.drawable() ? "; zoom in to see them" : ""}).`,
      this.thresholds().length && "Red lines: alerts are raised at the dashed one, and cleared at the dotted one.",
      this.besides() && "Grey and dashed: the model beside this one.",
      one.events > one.history.length &&
        `The last ${one.history.length} of ${one.events.toLocaleString("en")} observations.`,
      this.unseen && `${this.unseen} of ${model.channels.length} channels not observed.`,
    ]
      .filter(Boolean)
      .join(" ");
  }

  drawable() {
    const {min, max} = this.view || this.all;
    return this.length > 0 && (max - min) / this.length < at("plots").clientWidth / 5;
  }
  attribute(parts) {
    this.parts = parts;
    this.made.forEach(plot => plot.redraw(false, false));
  }
}

function besideRisk(point) {
  const found = typeof point.beside === "object" && point.beside !== null ? point.beside.risk : point.beside;
  return typeof found === "number" ? found : null;
}
