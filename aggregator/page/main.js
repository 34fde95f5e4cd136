// SPDX-License-Identifier: GPL-3.0-or-later
// The frame of the page: the session, the view that the address names, and the state of the connection.
import { Live, Problem, login, logout, resume } from "./client.js";
import { clock, el, span } from "./dom.js";
import * as overview from "./overview.js";
import * as incident from "./incident.js";
import * as job from "./job.js";

const main = document.getElementById("main");
const nav = document.getElementById("nav");
const state = document.getElementById("state");
const leave = document.getElementById("leave");

const routes = [
  [/^\/$/, overview.overview],
  [/^\/nodes$/, overview.nodes],
  [/^\/incidents$/, incident.list],
  [/^\/incidents\/([^/]+)$/, incident.one],
  [/^\/jobs\/([^/?]+)(?:\?rank=(\d+))?$/, job.one],
];

let view = null, live = null;

// The other tabs of this page: they have the same session.
const tabs = new BroadcastChannel("neutracer" + location.pathname);

function describe(name, since, text) {
  document.body.classList.toggle("stale", name === "stale");
  state.dataset.state = name;
  if (name === "stale")
    state.textContent = `Stale since ${clock(since)} UTC (${span((Date.now() - since) / 1000)})` + (text ? ": " + text : "");
  else
    state.textContent = name === "live" ? "Live" : name === "polling" ? "Updated every 5 s" : "";
}

function showLogin(text) {
  live?.close();
  live = view = null;
  describe("", 0);
  nav.hidden = leave.hidden = true;
  document.title = "NeuTracer: log in";
  const token = el("input", { id: "token", type: "password", autocomplete: "current-password", required: true, spellcheck: "false" });
  const error = el("p", { class: "error", role: "alert" }, text || "");
  const form = el("form", { class: "login", on: { submit: async (event) => {
    event.preventDefault();
    error.textContent = "";
    try {
      await login(token.value.trim());
      token.value = "";
      tabs.postMessage("began");
      start();
    } catch (problem) {
      error.textContent = problem.status === 401 ? "The token is not valid." : problem.message;
      token.select();
    }
  } } },
  el("h1", {}, "Log in"),
  el("p", { class: "soft" }, "The token is in the aggregator's token file. It is exchanged for a session of this browser and is not stored."),
  el("label", { for: "token" }, "Token"), token, el("button", { type: "submit" }, "Log in"), error);
  main.replaceChildren(form);
  token.focus();
}

function report(name, since, text) {
  if (name === "ended")
    showLogin("The session has ended.");
  else
    describe(name, since, text);
}

function showProblem(problem) {
  main.replaceChildren(el("h1", {}, problem.status === 404 ? "Not found" : "This cannot be shown"),
    el("p", { class: "error", role: "alert" }, problem.message));
}

async function refresh() {
  const current = view;
  try {
    await current?.refresh();
  } catch (problem) {
    // A view that is left has no say, and what is shown already stays.
    if (current !== view)
      return;
    if (problem instanceof Problem && problem.status >= 400 && problem.status !== 401 && !current.isShown?.())
      showProblem(problem);
    else
      throw problem;
  }
}

/** The view of an address, and the parts of the address. Addresses are typed and sent: any text is possible. */
function find(path) {
  for (const [pattern, make] of routes) {
    const match = pattern.exec(path);
    if (!match)
      continue;
    try {
      return [make, match.slice(1).map((part) => part === undefined ? part : decodeURIComponent(part))];
    } catch {
      break; // "%" without two digits
    }
  }
  return [null, []];
}

async function route(moved) {
  const path = location.hash.slice(1) || "/";
  const [make, parts] = find(path);
  view?.close?.();
  for (const a of nav.querySelectorAll("a"))
    if (a.hash === "#" + path)
      a.setAttribute("aria-current", "page");
    else
      a.removeAttribute("aria-current");
  document.title = "NeuTracer";
  if (!make) {
    view = null;
    showProblem({ status: 404, message: "There is no such page." });
    return;
  }
  main.replaceChildren(el("p", { class: "soft" }, "Loading …"));
  view = make(main, ...parts);
  if (moved)
    main.focus({ preventScroll: true });
  scrollTo(0, 0);
  live.soon();
}

function start() {
  nav.hidden = leave.hidden = false;
  live?.close();
  live = new Live(refresh, report);
  route(false);
}

leave.addEventListener("click", async () => {
  leave.disabled = true;
  try {
    await logout();
    tabs.postMessage("ended");
    showLogin();
  } catch (problem) {
    state.dataset.state = "stale";
    state.textContent = "Not logged out: " + problem.message;
  } finally {
    leave.disabled = false;
  }
});
tabs.addEventListener("message", async ({ data }) => {
  if (data === "ended" && live)
    showLogin("The session was ended in another tab.");
  else if (data === "began" && !live && await resume().catch(() => false))
    start();
});
addEventListener("hashchange", () => {
  if (live)
    route(true);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});

try {
  if (await resume())
    start();
  else
    showLogin();
} catch (problem) {
  showLogin(problem.message);
}
