/* The service as a whole: its model, feeds, alerts of all series, and observations that were refused. */
import {ago, alertEntry, at, condition, describe, get, intervals, make, number, visible} from "./common.js";

const EVERY = 5000,
  SOON = 500,
  ACTIVE = 12,
  ALERTS = 50,
  LETTERS = 50,
  MOST_LETTERS = 1000,
  LETTER = 300,
  NAMES = 12;
const SHOWN = {open: "open", alert: "with an alert", archived: "archived"};

const some = names =>
  names.slice(0, NAMES).map(visible).join(", ") + (names.length > NAMES ? ` and ${names.length - NAMES} more` : "");

export class ServiceView {
  constructor(model, open, failed) {
    this.model = model;
    this.open = open;
    this.failed = failed;
    this.alerts = [];
    this.told = "";
    setInterval(() => {
      if (!document.hidden) this.refresh();
    }, EVERY);
  }
  /* Refresh soon, once for all news until then. */
  soon() {
    if (!this.due)
      this.due = setTimeout(() => {
        this.due = null;
        this.refresh();
      }, SOON);
  }
  get shown() {
    return at("service").getClientRects().length > 0;
  }

  /* All that the service still knows, once a connection is there. */
  async begin() {
    try {
      const [model, past] = await Promise.all([this.model(), get(`/alerts?limit=${ALERTS}`)]);
      this.alerts = past.alerts;
      describe(at("model"), [
        ["model", model.model.slice(0, 16)],
        ...(model.beside ? [["beside it", model.beside.slice(0, 16)]] : []),
        ["sorted by", visible(model.risk)],
        ["channels", some(model.channels)],
        ["outputs", some(model.outputs)],
        ["query intervals", intervals(model) || "closed by the feed"],
        [
          "alerts",
          model.alerts.map(one => `${condition(model, one.alert)}, until ${one.cleared}`).join("; ") || "none",
        ],
      ]);
      at("sorted").textContent = visible(model.risk);
      at("sorted").title = visible(model.risk);
    } catch (error) {
      this.failed(error);
    }
    await this.refresh();
  }

  async refresh() {
    try {
      const found = await get("/feeds");
      if (found.error) return;
      this.draw(found);
      if (!this.shown) return;
      const [model, raised, {dead_letters: letters}] = await Promise.all([
        this.model(),
        get(`/series?show=alert&limit=${ACTIVE}`),
        get(`/dead-letters?limit=${LETTERS}`),
      ]);
      this.drawLists(model, found, raised, letters);
    } catch (error) {
      this.failed(error);
    }
  }

  draw(found) {
    const refused = Object.values(found.refused).reduce((a, b) => a + b, 0);
    at("refused").hidden = refused === 0 && found.failure === null;
    at("refused").replaceChildren(
      ...(found.failure === null ? [refused.toLocaleString("en"), make("span", {text: " refused"})] : ["failing"]),
    );
    at("failure").hidden = found.failure === null;
    at("failure").textContent = found.failure || "";
    for (const option of at("show").options) {
      const text = `${SHOWN[option.value]} (${found.series[option.value].toLocaleString("en")})`;
      if (option.textContent !== text) option.textContent = text;
    }
    document.title = found.series.alert ? `▲ ${found.series.alert} · logcde serve` : "logcde serve";
    const figure = text => make("td", {class: "figure", text});
    at("feeds").replaceChildren(
      ...found.feeds.map(one =>
        make(
          "tr",
          {},
          make("td", {text: visible(one.name)}),
          make("td", {text: one.partition ?? "–"}),
          make("td", {class: one.state === "failing" ? "bad" : "", text: visible(one.state)}),
          figure(one.position?.toLocaleString("en") ?? "–"),
          figure(one.waiting?.toLocaleString("en") ?? "–"),
          figure(one.lag_seconds === null ? "–" : `${one.lag_seconds.toFixed(1)} s`),
          make("td", {text: visible(one.owner ?? "–")}),
        ),
      ),
    );
    const letters =
      found.dead_letters >= MOST_LETTERS
        ? `${MOST_LETTERS.toLocaleString("en")} or more`
        : found.dead_letters.toLocaleString("en");
    describe(at("counts"), [
      ["taken", found.observations.toLocaleString("en")],
      ["repeated", found.repeated.toLocaleString("en")],
      ["refused", refused.toLocaleString("en")],
      ["not finite", found.not_finite.toLocaleString("en")],
      ["out of range", found.outside.toLocaleString("en")],
      ["dead letters", letters],
    ]);
  }

  drawLists(model, found, raised, letters) {
    const none = text => [make("li", {class: "soft", text})];
    const told = JSON.stringify([raised, letters, found.refused, this.alerts], (name, value) =>
      typeof value === "bigint" ? String(value) : value,
    );
    if (told === this.told) return; // a click may be under way
    this.told = told;
    const rows = raised.series.map(one =>
      make(
        "li",
        {},
        make("button", {class: "link", text: visible(one.series), click: () => this.open(one.series)}),
        make("span", {class: "figure bad", text: number(one.risk)}),
        make("span", {class: "soft", text: one.alerts.map(name => condition(model, name)).join(", ")}),
      ),
    );
    if (raised.total > rows.length)
      rows.push(
        make("li", {
          class: "soft",
          text: `and ${(raised.total - rows.length).toLocaleString("en")} more: choose "with an alert" above the list.`,
        }),
      );
    at("raised").replaceChildren(...(rows.length ? rows : none("None.")));
    at("past").replaceChildren(
      ...(this.alerts.length ? this.alerts.map(one => alertEntry(one, this.open)) : none("None that are kept.")),
    );
    const most = Math.max(1, ...Object.values(found.refused));
    at("reasons").replaceChildren(
      ...Object.entries(found.refused).map(([reason, count]) => {
        const bar = make("i", {class: "raises"});
        bar.style.width = `${(count / most) * 100}%`;
        return make(
          "li",
          {},
          make("span", {text: visible(reason)}),
          make("span", {class: "bar"}, bar),
          make("span", {class: "figure", text: count.toLocaleString("en")}),
        );
      }),
    );
    at("letters").replaceChildren(
      ...(letters.length
        ? letters.map(one =>
            make(
              "li",
              {class: "letter"},
              make("span", {class: "bad", text: visible(one.reason)}),
              make("span", {class: "soft", text: `${ago(one.received)}${one.times > 1 ? `, ${one.times} times` : ""}`}),
              make("p", {text: visible(one.error)}),
              make("code", {text: visible(one.text.length > LETTER ? one.text.slice(0, LETTER) + " …" : one.text)}),
            ),
          )
        : none("None.")),
    );
  }

  news(content, number_) {
    if (this.alerts.some(one => one.number === number_)) return;
    this.alerts = [{...content, number: number_}, ...this.alerts].slice(0, ALERTS);
    this.soon();
  }
}
