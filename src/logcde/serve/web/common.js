/* What all parts of the page use: requests, elements, numbers, stamps. */

export const at = id => document.getElementById(id);

/* Elements are made of names and texts, never of markup: ids, channels and errors are anybody's text. */
export function make(tag, options = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(options)) {
    if (name === "text") element.textContent = value;
    else if (name === "click") element.addEventListener("click", value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

/* Requests. */
let token = sessionStorage.getItem("token") || "";
export class NoTokenError extends Error {}
export function useToken(text) {
  token = text;
  sessionStorage.setItem("token", text);
}

export async function ask(path, options = {}) {
  const headers = {...options.headers, ...(token ? {authorization: "Bearer " + token} : {})};
  const answer = await fetch(path, {...options, headers});
  if (answer.status === 401) {
    at("asked").hidden = false;
    at("wrong").textContent = token ? "This is not the token." : "";
    throw new NoTokenError();
  }
  return answer;
}

/* The content of an answer; of one that refuses, {error}. */
export async function get(path) {
  return parse(await (await ask(path)).text());
}

/* JSON whose whole numbers beyond 2^53 are kept exactly, where the browser shows their text. */
export function parse(text) {
  return JSON.parse(text, (name, value, context) =>
    typeof value === "number" && Math.abs(value) > Number.MAX_SAFE_INTEGER && context && /^-?\d+$/.test(context.source)
      ? BigInt(context.source)
      : value,
  );
}

/* Ids of series: the text "7" and the number 7 are two. */
export const key = id => (typeof id === "string" ? JSON.stringify(id) : String(id));
export function address(id, options = {}) {
  const kind = typeof id === "string" ? "text" : "number";
  return `/series/${encodeURIComponent(String(id))}?${new URLSearchParams({id: kind, ...options})}`;
}

/* A text in which characters that cannot be seen, or that turn the direction of others, are written out. */
export function visible(text) {
  const shown = String(text).replace(/[\p{C}\p{Zl}\p{Zp}]/gu, one => `\\u{${one.codePointAt(0).toString(16)}}`);
  return shown.trim() === shown && shown !== "" ? shown : `"${shown}"`;
}

export function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(Number(value));
  return size >= 1e6 || (size !== 0 && size < 1e-3) ? Number(value).toExponential(2) : Number(value).toFixed(3);
}
/* A value as it was observed, shortened to what fits beside a plot. */
export function measured(value) {
  if (typeof value === "bigint" || (Number.isInteger(value) && Math.abs(value) < 1e6)) return String(value);
  return typeof value === "number" ? String(Number(value.toPrecision(5))) : "–";
}
export function ago(seconds) {
  const past = Math.max(0, Date.now() / 1000 - seconds);
  const [unit, length] = past < 90 ? ["s", 1] : past < 5400 ? ["min", 60] : past < 172800 ? ["h", 3600] : ["d", 86400];
  return `${Math.round(past / length)} ${unit} ago`;
}

/* Times: seconds since 1970 where stamps are datetimes, which are UTC if they name no zone; or else the numbers. */
export function time(stamp) {
  if (typeof stamp !== "string") return Number(stamp);
  const text = stamp.replace(" ", "T").replace(/^(\d{4})(\d\d)(\d\d)(?=T|$)/, "$1-$2-$3");
  const zoned = !text.includes("T") || /(Z|[+-]\d\d(:?\d\d)?)$/.test(text);
  return Date.parse(zoned ? text : text + "Z") / 1000;
}
export const shownStamp = stamp =>
  typeof stamp === "string" ? stamp.replace("T", " ") : String(Number(Number(stamp).toPrecision(12)));

/* The numbers in a prediction by output: {value, lower, upper}, the last two where the model gives an interval, beside
   the numbers or with each of them. Outputs of a model may have these names themselves. */
export function outputsOf(prediction, names) {
  const found = new Map();
  if (prediction === null || typeof prediction !== "object") return found;
  const {lower, upper, ...rest} = prediction;
  const bounded = lower !== undefined && upper !== undefined && !names.includes("lower") && !names.includes("upper");
  const values = prediction.probabilities || (bounded ? rest : prediction);
  for (const [name, value] of Object.entries(values)) {
    const nested = value !== null && typeof value === "object" ? value : null;
    const bound = side =>
      nested ? nested[side] : bounded ? (prediction[side]?.[name] ?? prediction[side]) : undefined;
    const own = nested ? (nested.value ?? nested.mean ?? nested.median ?? null) : value;
    if (own !== null && typeof own === "object") continue;
    const [low, high] = [bound("lower"), bound("upper")];
    found.set(name, {
      value: own,
      lower: typeof low === "number" ? low : null,
      upper: typeof high === "number" ? high : null,
    });
  }
  return found;
}

/* How query intervals end, in words. */
export function intervals(model) {
  const {length, events} = model.interval,
    unit = model.clock.unit || "";
  return length ? `${length} ${length === 1 ? unit.replace(/s$/, "") : unit}`.trim() : events ? `${events} events` : "";
}
/* An alert by what raises it. */
export function condition(model, name) {
  const one = model.alerts.find(one => one.alert === name);
  return one ? `${visible(one.output)} ${one.raised > one.cleared ? "≥" : "≤"} ${one.raised}` : visible(name);
}

export const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/* Rows of a description list: [name, value] pairs. */
export function describe(list, rows) {
  list.replaceChildren(
    ...rows.map(([name, value]) => make("div", {}, make("dt", {text: name}), make("dd", {}, value))),
  );
}
/* An entry of a list of alerts; a click opens its series. */
export function alertEntry(one, open) {
  const change = one.change === "raised" ? "▲ raised" : "▽ cleared";
  const parts = [
    make("span", {class: one.change === "raised" ? "bad" : "soft", text: change}),
    make("span", {text: `${visible(one.output)} at ${number(one.value)}`}),
    make("span", {class: "soft", text: `for ${shownStamp(one.time)}`}),
  ];
  if (open) parts.unshift(make("button", {class: "link", text: visible(one.series), click: () => open(one.series)}));
  return make("li", {}, ...parts);
}
