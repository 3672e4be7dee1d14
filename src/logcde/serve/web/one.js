/* One series: its prediction, its observations, what the prediction rests on, its alerts. */
import {
  address,
  ago,
  alertEntry,
  at,
  condition,
  describe,
  get,
  key,
  make,
  measured,
  number,
  outputsOf,
  shownStamp,
  visible,
} from "./common.js";
import {Plots} from "./plots.js";

const HISTORY = 500,
  ALERTS = 100,
  BETWEEN = 500,
  ROWS = 50,
  PARTS = 10;

export class OneSeries {
  constructor(model, failed) {
    this.model = model;
    this.failed = failed;
    this.id = null;
    this.plots = new Plots();
    this.due = null;
    at("attribute").addEventListener("click", () => this.attribute());
    at("last").addEventListener("toggle", () => this.table());
  }

  async open(id) {
    this.id = id;
    this.one = null;
    this.fresh = true;
    this.between = [];
    this.alerts = [];
    at("one").hidden = false;
    at("gone").hidden = true;
    at("one").scrollTop = 0;
    at("one").classList.add("loading");
    at("name").textContent = visible(id);
    at("name").title = key(id);
    this.rest("", null);
    await this.refresh();
  }
  close() {
    this.id = null;
    at("one").hidden = true;
  }

  async refresh() {
    const id = this.id;
    if (id === null) return;
    try {
      const past = this.fresh ? get("/alerts?" + new URLSearchParams({series: String(id), limit: ALERTS})) : null;
      const [model, one, told] = await Promise.all([this.model(), get(address(id, {history: HISTORY})), past]);
      if (this.id !== id) return;
      if (this.fresh && told !== null) {
        const known = new Set(this.alerts.map(one => one.number)); // told while this was loading
        this.alerts = [
          ...this.alerts,
          ...told.alerts.filter(one => key(one.series) === key(id) && !known.has(one.number)),
        ];
        this.complete = told.complete;
      }
      if (model !== this.plots.model || this.fresh) this.plots.begin(model);
      this.fresh = false;
      at("gone").hidden = !one.error;
      at("gone").textContent = one.error || "";
      at("one").classList.toggle("loading", Boolean(one.error)); // nothing of another series is seen meanwhile
      if (!one.error) {
        this.one = one;
        this.draw();
      }
    } catch (error) {
      this.failed(error);
    }
  }

  draw() {
    const one = this.one;
    this.plots.show(one, this.between, this.alerts);
    const {risk} = this.plots.model,
      value = one.risk ?? outputsOf(one.prediction, this.plots.model.outputs).get(risk)?.value;
    const class_ = one.prediction?.class,
      rows = [
        [risk, make("span", {class: one.alerts.length ? "large bad" : "large", text: number(value)})],
        ["for", shownStamp(one.time)],
        ["observations", one.events.toLocaleString("en")],
        ["seen", ago(one.updated)],
        ["began", ago(one.began)],
      ];
    if (class_ !== undefined) rows.splice(1, 0, ["class", visible(class_ ?? "–")]);
    if (one.archived) rows.push(["archived", "yes"]);
    if (one.beside) rows.push([`beside it, ${one.beside.model.slice(0, 12)}`, number(one.beside.risk)]);
    describe(
      at("facts"),
      rows.map(([name, value]) => [visible(name), value]),
    );
    at("active").replaceChildren(
      ...one.alerts.map(name => make("li", {class: "chip bad", text: "▲ " + condition(this.plots.model, name)})),
    );
    const entries = this.alerts.slice(0, ALERTS).map(alert => alertEntry(alert));
    if (!entries.length)
      entries.push(make("li", {class: "soft", text: this.complete ? "None." : "None that are kept."}));
    at("alerts").replaceChildren(...entries);
    this.table();
  }

  table() {
    if (!at("last").open || !this.one) return;
    at("table").replaceChildren(
      ...this.one.history
        .slice(-ROWS)
        .reverse()
        .map(x =>
          make(
            "tr",
            {},
            make("td", {class: "figure", text: shownStamp(x.time)}),
            make(
              "td",
              {},
              ...Object.entries(x.values)
                .filter(([, value]) => value !== null)
                .map(([name, value]) => make("span", {class: "pair", text: `${visible(name)} ${value}`})),
            ),
            make("td", {class: "figure", text: number(x.risk)}),
          ),
        ),
    );
  }

  /* News of this series: a prediction, which may have come without an observation, or an alert. */
  news(kind, content, number_) {
    if (this.id === null || key(content.series) !== key(this.id)) return;
    if (kind === "alert" && !this.alerts.some(one => one.number === number_))
      this.alerts.unshift({...content, number: number_});
    if (kind === "prediction")
      this.between = [...this.between.slice(1 - BETWEEN), {time: content.time, prediction: content.prediction}];
    if (this.due === null)
      this.due = setTimeout(() => {
        this.due = null;
        this.refresh();
      }, 250);
  }

  /* What the current prediction rests on is computed on demand, and holds until it is asked for again. */
  async attribute() {
    const id = this.id;
    this.rest("Computing …", null);
    try {
      const one = await get(address(id, {history: 0, attribution: 1})),
        found = one.attribution;
      if (this.id !== id) return;
      if (!found || found.error || one.error)
        this.rest(one.error || found?.error || "The service does not answer this.", null);
      else
        this.rest(
          [
            `${visible(found.output)} for ${shownStamp(one.time)}: red raises it, blue lowers it.`,
            found.parts.length > PARTS && `The ${PARTS} largest of ${found.parts.length} parts.`,
          ]
            .filter(Boolean)
            .join(" "),
          found.parts,
        );
    } catch (error) {
      this.rest("", null);
      this.failed(error);
    }
  }
  rest(text, parts) {
    at("attributed").hidden = text === "";
    at("attributed").textContent = text;
    at("parts").hidden = parts === null;
    const ranked = [...(parts || [])].sort((a, b) => Math.abs(b.amount) - Math.abs(a.amount)).slice(0, PARTS);
    const most = Math.abs(ranked[0]?.amount) || 1;
    at("parts").replaceChildren(
      ...ranked.map(part => {
        const bar = make("i", {class: part.amount > 0 ? "raises" : "lowers"}),
          span = part.begin === part.end ? "" : ` to ${shownStamp(part.end)}`;
        bar.style.width = `${(Math.abs(part.amount) / most) * 100}%`;
        return make(
          "li",
          {},
          make("span", {text: visible(part.channel)}),
          make("span", {class: "bar"}, bar),
          make("span", {class: "figure", text: (part.amount > 0 ? "+" : "−") + measured(Math.abs(part.amount))}),
          make("span", {
            class: "soft",
            text: `${part.count === 1 ? "once" : part.count + " times"}, ${shownStamp(part.begin)}${span}`,
          }),
        );
      }),
    );
    this.plots.attribute(parts || []);
  }
}
