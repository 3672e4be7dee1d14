/* The list of series: rows exist for what is visible only. */
import {ago, ask, at, color, key, make, number, NoTokenError, parse, visible} from "./common.js";

const ROW = 34,
  SPARKS = 30,
  STILL = 700;

export class SeriesList {
  constructor(opened, failed) {
    this.opened = opened;
    this.failed = failed;
    this.rows = new Map();
    this.total = 0;
    this.cursor = 0;
    this.chosen = null;
    this.run = 0;
    this.due = null;
    this.pointed = -Infinity;
    const list = at("list");
    list.addEventListener("scroll", () => this.soon(40));
    list.addEventListener("pointermove", () => {
      this.pointed = performance.now();
    });
    list.addEventListener("keydown", event => this.pressed(event));
    list.addEventListener("focus", () => this.mark());
    list.addEventListener("blur", () => this.mark());
    new ResizeObserver(() => {
      at("heads").style.marginRight = list.offsetWidth - list.clientWidth + "px"; // a scroll bar
      this.soon();
    }).observe(list);
    for (const id of ["sort", "show"]) at(id).addEventListener("change", () => this.restart());
    at("search").addEventListener("input", () => this.restart(150));
    at("search").addEventListener("keydown", event => {
      if (event.key === "ArrowDown" || event.key === "Enter") {
        event.preventDefault();
        list.focus();
      }
    });
  }

  restart(wait = 0) {
    at("list").scrollTop = 0;
    this.cursor = 0;
    this.soon(wait);
  }

  /* Refresh once within this time, however often it is called. */
  soon(wait = 100) {
    const then = performance.now() + wait;
    if (this.due !== null && this.then <= then) return;
    clearTimeout(this.due);
    this.then = then;
    this.due = setTimeout(() => {
      this.due = null;
      this.refresh();
    }, wait);
  }
  /* The same for news: rows do not move under a pointer that moves. */
  news() {
    this.soon(performance.now() - this.pointed < STILL ? STILL : 400);
  }

  async refresh() {
    const run = ++this.run,
      list = at("list");
    const first = Math.max(0, Math.floor(list.scrollTop / ROW) - 5);
    const limit = Math.min(200, Math.ceil(list.clientHeight / ROW) + 10);
    const asked = {sort: at("sort").value, show: at("show").value, search: at("search").value};
    try {
      const answer = await ask("/series?" + new URLSearchParams({...asked, offset: first, limit, recent: SPARKS}));
      const found = parse(await answer.text());
      if (run !== this.run || !answer.ok) return;
      this.draw(first, found, asked.search);
    } catch (error) {
      if (run === this.run && !(error instanceof NoTokenError)) this.failed(error);
    }
  }

  draw(first, found, search) {
    this.total = found.total;
    this.cursor = Math.min(this.cursor, Math.max(0, this.total - 1));
    at("space").style.height = this.total * ROW + "px";
    at("total").textContent = this.total.toLocaleString("en") + " series";
    at("none").hidden = this.total > 0;
    at("none").textContent = search ? "No id contains this text." : "No series.";
    const paint = {"": color("--mark"), alert: color("--bad")};
    found.series.forEach((one, place) => this.fill(this.row(first + place), one, paint));
    const last = first + found.series.length;
    for (const [place, row] of this.rows)
      if (place < first || place >= last) {
        row.remove();
        this.rows.delete(place);
      }
    this.mark();
  }

  row(place) {
    let row = this.rows.get(place);
    if (row) return row;
    row = make(
      "div",
      {class: "row", role: "option", id: "row-" + place},
      make("span", {class: "name"}),
      make("span", {class: "risk figure"}),
      make("canvas", {height: ROW - 10}),
      make("span", {class: "seen figure"}),
    );
    row.style.top = place * ROW + "px";
    row.addEventListener("click", () => {
      this.cursor = place;
      this.opened(row.series);
    });
    this.rows.set(place, row);
    at("space").append(row);
    return row;
  }

  fill(row, one, paint) {
    const [name, risk, spark, seen] = row.children,
      raised = one.alerts.length > 0;
    row.series = one.series;
    name.textContent = visible(one.series);
    risk.textContent = number(one.risk);
    seen.textContent = ago(one.updated);
    row.classList.toggle("alert", raised);
    row.setAttribute("aria-setsize", this.total);
    row.setAttribute("aria-posinset", Number(row.id.slice(4)) + 1);
    const beside = one.beside ? `\nbeside it, model ${one.beside.model.slice(0, 12)}: ${number(one.beside.risk)}` : "";
    row.title = visible(one.series) + (raised ? "\nalerts: " + one.alerts.join(", ") : "") + beside;
    drawSpark(spark, one.recent || [], paint[raised ? "alert" : ""]);
  }

  /* Show which series is open, and where the keyboard is. */
  mark() {
    const focused = document.activeElement === at("list");
    for (const [place, row] of this.rows) {
      row.setAttribute("aria-selected", String(this.chosen !== null && key(row.series) === key(this.chosen)));
      row.classList.toggle("here", focused && place === this.cursor);
    }
    if (this.rows.has(this.cursor)) at("list").setAttribute("aria-activedescendant", "row-" + this.cursor);
    else at("list").removeAttribute("aria-activedescendant");
  }

  pressed(event) {
    const list = at("list"),
      page = Math.floor(list.clientHeight / ROW);
    const steps = {ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity};
    if (event.key in steps) {
      event.preventDefault();
      this.cursor = Math.min(Math.max(0, this.cursor + steps[event.key]), Math.max(0, this.total - 1));
      const top = this.cursor * ROW,
        bottom = top + ROW - list.clientHeight;
      if (top < list.scrollTop) list.scrollTop = top;
      else if (bottom > list.scrollTop) list.scrollTop = bottom;
      this.mark();
      this.soon(20);
    } else if ((event.key === "Enter" || event.key === " ") && this.rows.has(this.cursor)) {
      event.preventDefault();
      this.opened(this.rows.get(this.cursor).series);
    }
  }
}

function drawSpark(canvas, values, stroke) {
  const scale = window.devicePixelRatio || 1,
    width = canvas.clientWidth,
    height = ROW - 10;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const known = values.filter(one => one !== null);
  if (known.length < 2) return;
  const low = Math.min(...known),
    high = Math.max(...known),
    span = high - low || 1;
  const pen = canvas.getContext("2d");
  pen.scale(scale, scale);
  const x = place => 3 + (place / (values.length - 1)) * (width - 6),
    y = one => height - 3 - ((one - low) / span) * (height - 6);
  pen.strokeStyle = pen.fillStyle = stroke;
  pen.lineWidth = 1.25;
  pen.lineJoin = "round";
  pen.beginPath();
  values.forEach((one, place) => {
    if (one !== null) pen.lineTo(x(place), y(one));
  });
  pen.stroke();
  const last = values.findLastIndex(one => one !== null);
  pen.beginPath();
  pen.arc(x(last), y(values[last]), 2, 0, 7);
  pen.fill();
}
