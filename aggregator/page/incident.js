// SPDX-License-Identifier: GPL-3.0-or-later
// Incidents: as cards, as a list, and one with its evidence, stacks and history.
import { get, list as readList } from "./client.js";
import { Handling, events, handled } from "./handling.js";
import { age, amount, duration, el, incidentPath, jobPath, link, minute, percent, render, table, time } from "./dom.js";

const SEVERITIES = ["critical", "warning", "info"];
const SHOWN = 200;

/** Critical first, then the larger slowdown, then the newer. */
export function bySeverity(a, b) {
  return SEVERITIES.indexOf(a.severity) - SEVERITIES.indexOf(b.severity) || (b.slowdown || 0) - (a.slowdown || 0) ||
    Date.parse(b.since) - Date.parse(a.since);
}

function rankList(ranks) {
  return ranks.length > 8 ? ranks.slice(0, 8).join(", ") + ` and ${ranks.length - 8} more` : ranks.join(", ");
}

export function culprit(one) {
  const parts = [];
  if (typeof one.rank === "number")
    parts.push("rank " + one.rank);
  if (one.kind && one.kind !== "rank")
    parts.push([one.kind, one.name].filter(Boolean).join(" "));
  if (one.node)
    parts.push("node " + one.node);
  if (one.peer)
    parts.push("to " + one.peer);
  if (one.pod)
    parts.push("pod " + one.pod);
  if (one.gpu)
    parts.push("GPU " + one.gpu);
  if (one.ranks?.length)
    parts.push("ranks " + rankList(one.ranks));
  return parts.join(", ");
}

/** The ranks that an incident names. */
export function namedRanks(incident) {
  return [...new Set((incident.culprits || []).flatMap((one) =>
    [...(typeof one.rank === "number" ? [one.rank] : []), ...(one.ranks || [])]))].sort((a, b) => a - b);
}

function cost(incident) {
  const parts = [];
  if (typeof incident.cost?.gpu_hours === "number")
    parts.push(amount(incident.cost.gpu_hours, "GPU hours"));
  if (typeof incident.cost?.money === "number")
    parts.push(amount(incident.cost.money, incident.cost.currency || ""));
  if (typeof incident.cost?.energy_kwh === "number")
    parts.push(amount(incident.cost.energy_kwh, "kWh"));
  return parts.join(", ") || "unknown";
}

function jobOf(incident, jobs) {
  return (jobs || []).find((job) => job.incidents?.includes(incident.id));
}

function fact(name, ...content) {
  return el("li", {}, el("span", {}, name + ": "), ...content);
}

export function facts(incident, jobs) {
  const job = jobOf(incident, jobs), ranks = namedRanks(incident);
  const path = job ? jobPath(job.id) + (ranks.length ? "?rank=" + ranks[0] : "") : null;
  return el("ul", { class: "facts" },
    fact("who", el("span", { class: "who" }, (incident.culprits || []).slice(0, 4).map(culprit).join("; ") || "nobody",
      incident.culprits?.length > 4 ? ` and ${incident.culprits.length - 4} more` : "")),
    fact("class", incident.class + (incident.cause ? ", " + incident.cause : "")),
    fact("since", `${time(incident.since)} (${age(incident.since, incident.until)})`),
    incident.until ? fact("until", time(incident.until)) : null,
    incident.slowdown ? fact("slowdown", "×" + amount(incident.slowdown)) : null,
    fact("cost", cost(incident)),
    handled(incident.handling) ? fact("handling", handled(incident.handling)) : null,
    fact("job", path ? link(path, incident.job, "job-of-" + incident.id) : incident.job,
      incident.namespace ? ` (${incident.namespace})` : ""));
}

function heading(incident, tag, content) {
  return [el("p", { class: "severity" }, incident.severity), el(tag, {}, content)];
}

export function card(incident, jobs) {
  return el("article", { class: incident.severity, id: "incident-" + incident.id },
    heading(incident, "h3", link(incidentPath(incident.id), incident.summary || incident.id)), facts(incident, jobs));
}

function value(number, unit) {
  if (typeof number !== "number")
    return "–";
  return unit === "ms" ? duration(number / 1000) : amount(number, unit || "");
}

export function evidence(incident) {
  if (!incident.evidence?.length)
    return el("p", {}, "There is no evidence beside the incident itself.");
  return table("Evidence", [
    ["What", (one) => one.what],
    ["Value", (one) => value(one.value, one.unit), "n"],
    ["Peers", (one) => value(one.peers, one.unit), "n"],
    ["Width", (one) => value(one.width, one.unit), "n"],
    ["Method", (one) => one.method],
    ["Windows", (one) => one.windows, "n"],
  ], incident.evidence);
}

function frame(one) {
  return el("li", {}, el("code", {}, one.function || "?"), ` (${one.file || "?"}${one.line ? ":" + one.line : ""})`,
    one.native ? el("span", { class: "soft" }, " native") : "");
}

function stack(one, index) {
  const notes = [one.holds_gil ? ", holds the GIL" : "", one.gc_running ? ", garbage collection runs" : ""].join("");
  const about = [`Read at ${time(one.read)}`, one.interpreter, one.state ? "state " + one.state : "", one.wait ? "in " + one.wait : ""];
  return el("details", { open: one.culprit, key: "stack-" + index },
    el("summary", {}, `Stack of rank ${one.rank}${one.culprit ? "" : " for comparison"}` +
      (one.thread ? `, thread ${one.thread}` : "") + (one.name ? ` (${one.name})` : "") + notes),
    el("p", { class: "soft" }, about.filter(Boolean).join(", ") + "."),
    one.frames?.length ? el("ol", {}, one.frames.map(frame)) : null,
    one.frames_left_out ? el("p", { class: "soft" }, `${one.frames_left_out} more frames.`) : null,
    one.python_reason ? el("p", { class: "soft" }, `Python frames: ${one.python_reason}.`) : null,
    one.native_reason ? el("p", { class: "soft" }, `Native frames: ${one.native_reason}.`) : null);
}

function history(incident) {
  const all = [[incident.since, "The deviation began."], ...events(incident)];
  for (const one of incident.stacks || [])
    all.push([one.read, `A stack of rank ${one.rank} was read.`]);
  all.push(incident.until ? [incident.until, "It was resolved."] : [incident.seen, "It was last seen."]);
  all.sort((a, b) => Date.parse(a[0]) - Date.parse(b[0]));
  return el("ol", { class: "history" }, all.map(([at, text]) => el("li", {}, el("span", { class: "t" }, time(at)), " ", text)));
}

export function one(main, id) {
  const top = el("section", {}), rest = el("section", {});
  const handling = new Handling(id, (incident) => show(incident));
  let isShown = false, jobs = [];

  function show(incident) {
    handling.set(incident);
    render(top, [incident, jobOf(incident, jobs)?.id, minute()], () =>
      el("article", { class: incident.severity }, heading(incident, "h1", incident.summary || id), facts(incident, jobs),
        el("ul", { class: "facts" }, fact("state", el("span", { class: incident.state }, incident.state)),
          fact("confidence", percent(incident.confidence)), fact("tier", incident.tier || "–"),
          fact("data", percent(incident.completeness) + " complete"), fact("id", el("code", {}, incident.id)))));
    render(rest, incident, () => [
      el("section", {}, el("h2", {}, "Evidence"), evidence(incident)),
      el("section", {}, el("h2", {}, "History"), history(incident)),
      el("section", {}, el("h2", {}, "Stacks"), incident.stacks?.length ? incident.stacks.map(stack)
        : el("p", {}, "No stack was read. neutracer profile reads those of a rank.")),
    ]);
  }

  async function refresh() {
    const [incident, all] = await Promise.all([get(incidentPath(id)), readList("jobs", 1000)]);
    jobs = all.items;
    document.title = "NeuTracer: " + (incident.summary || id);
    if (!isShown)
      main.replaceChildren(top, handling.root, rest);
    isShown = true;
    show(incident);
  }

  return { refresh, isShown: () => isShown };
}

export function list(main) {
  const part = el("section", {});
  let isShown = false;

  async function refresh() {
    const incidents = await readList("incidents", SHOWN);
    document.title = "NeuTracer: incidents";
    if (!isShown)
      main.replaceChildren(el("h1", {}, "Incidents"), part);
    isShown = true;
    render(part, incidents, () => table("The newest first" + (incidents.more ? `; the first ${incidents.items.length}` : ""), [
      ["Incident", (incident) => link(incidentPath(incident.id), incident.summary || incident.id)],
      ["State", (incident) => el("span", { class: incident.state }, incident.state)],
      ["Severity", (incident) => incident.severity],
      ["Class", (incident) => incident.class],
      ["Job", (incident) => incident.job],
      ["Slowdown", (incident) => incident.slowdown ? "×" + amount(incident.slowdown) : "", "n"],
      ["Cost", (incident) => cost(incident), "n"],
      ["Since", (incident) => time(incident.since), "t"],
      ["Until", (incident) => incident.until ? time(incident.until) : "", "t"],
    ], incidents.items));
  }

  return { refresh, isShown: () => isShown };
}
