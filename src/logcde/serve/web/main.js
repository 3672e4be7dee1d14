/* The page: what is open, the keyboard, and the events that it follows. */
import {ask, at, get, key, NoTokenError, parse, useToken} from "./common.js";
import {SeriesList} from "./list.js";
import {OneSeries} from "./one.js";
import {ServiceView} from "./service.js";

const AGAIN = 1000,
  SILENCE = 40_000;
let model = null,
  known = false,
  last = null,
  stream = null;

/* The model is asked for once in a connection: the service may have been started again with another one. */
async function theModel() {
  if (known) return model;
  const found = await get("/model");
  if (found.error) throw new Error(found.error);
  if (JSON.stringify(found) !== JSON.stringify(model)) model = found;
  known = true;
  return model;
}
function health(kind, text) {
  at("health").className = kind;
  at("health").textContent = text;
  document.body.classList.toggle("stale", kind === "bad"); // what is shown is not as of now
}
function failed(error) {
  if (error instanceof NoTokenError) return;
  if (error instanceof TypeError && !/fetch|network|load/i.test(error.message)) throw error; // a mistake of this page
  stream?.abort(); // which connects anew
}

const list = new SeriesList(go, failed),
  one = new OneSeries(theModel, failed),
  service = new ServiceView(theModel, go, failed);

const narrow = matchMedia("(max-width: 760px)");
/* What is open is the fragment of the address: an id in JSON, or "service". So it survives reloads, and going back. */
function go(id) {
  location.hash = "#" + encodeURIComponent(key(id));
}
function leave() {
  history.pushState(null, "", "/");
  route();
  at("list").focus();
}
function opened() {
  try {
    return parse(decodeURIComponent(location.hash.slice(1)));
  } catch {
    return null;
  }
}
function route() {
  const id = opened(),
    wanted = ["string", "number", "bigint"].includes(typeof id) ? id : null,
    aside = location.hash.length > 1;
  document.body.classList.toggle("aside", aside);
  for (const part of [at("left"), document.querySelector("header")]) part.inert = narrow.matches && aside;
  at("service").hidden = wanted !== null;
  at("overview").setAttribute("aria-pressed", String(wanted === null && (aside || !narrow.matches)));
  list.chosen = wanted;
  list.mark();
  if (wanted === null) {
    one.close();
    service.refresh();
  } else if (one.id === null || key(one.id) !== key(wanted)) one.open(wanted);
  if (narrow.matches && aside)
    at(wanted === null ? "service" : "one")
      .querySelector(".close")
      .focus();
}
window.addEventListener("hashchange", route);
window.addEventListener("popstate", route);
narrow.addEventListener("change", route);
document.addEventListener("visibilitychange", () => {
  if (!document.hidden) {
    list.soon();
    one.refresh();
    service.soon();
  }
});
at("overview").addEventListener("click", () => {
  location.hash = "#service";
});
for (const button of document.querySelectorAll(".close")) button.addEventListener("click", leave);

document.addEventListener("keydown", event => {
  const typing = ["INPUT", "SELECT"].includes(document.activeElement.tagName);
  if (event.key === "Escape") {
    if (location.hash.length > 1) leave();
    else if (typing) at("list").focus();
  } else if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    at("search").focus();
    at("search").select();
  }
});

at("asked").addEventListener("submit", event => {
  event.preventDefault();
  useToken(at("token").value.trim());
  at("asked").hidden = true;
  follow.again?.();
});

/* Events are read by fetch, which can send a token and the last event that was seen. */
function take(part) {
  const event = Object.fromEntries(
    part.split("\n").map(line => [line.slice(0, line.indexOf(":")), line.slice(line.indexOf(":") + 1).trim()]),
  );
  if (!event.data) return;
  last = event.id;
  const content = parse(event.data);
  if (event.event === "alert") service.news(content, Number(event.id));
  one.news(event.event, content, Number(event.id));
  if (!document.hidden) list.news();
}
async function read(answer, alive) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let text = ""; ;) {
    const {value, done} = await reader.read();
    if (done) return;
    alive();
    const parts = (text + value).split("\n\n");
    text = parts.pop();
    parts.forEach(take);
  }
}
async function follow() {
  for (;;) {
    stream = new AbortController();
    const {signal} = stream;
    let watch = null;
    const alive = () => {
      clearTimeout(watch);
      watch = setTimeout(() => stream.abort(), SILENCE);
    };
    try {
      alive();
      const answer = await ask("/events", {signal, headers: last === null ? {} : {"last-event-id": last}});
      if (!answer.ok) throw new Error(String(answer.status));
      known = false;
      health("good", "connected");
      list.refresh();
      one.refresh();
      service.begin();
      await read(answer, alive);
    } catch (error) {
      if (error instanceof NoTokenError) {
        health("", "");
        await new Promise(done => {
          follow.again = done;
        });
        continue;
      }
    } finally {
      clearTimeout(watch);
    }
    health("bad", "not connected");
    await new Promise(done => setTimeout(done, AGAIN));
  }
}
setInterval(() => {
  if (!document.hidden) list.soon();
}, 5000);
route();
follow();
