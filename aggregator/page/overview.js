// SPDX-License-Identifier: GPL-3.0-or-later
// The first view: what is wrong now, jobs, nodes by score, links that lose or repeat data; and all nodes.
import { list } from "./client.js";
import { amount, duration, el, jobPath, link, minute, percent, rate, render, table, time } from "./dom.js";
import { bySeverity, card } from "./incident.js";

const SHOWN_JOBS = 200, SHOWN_NODES = 20, SHOWN_LINKS = 20;
const LINK_JOBS = 4; // whose links are read
const LINKS_MS = 30000;

function jobsTable(jobs, more) {
  return [table("Running jobs first" + (more ? `; the first ${jobs.length}` : ""), [
    ["Job", (job) => link(jobPath(job.id), job.name)],
    ["Namespace", (job) => job.namespace],
    ["State", (job) => el("span", { class: job.state }, job.state)],
    ["Incidents", (job) => job.incidents ? job.incidents.length || "" : "", "n"],
    ["Ranks", (job) => `${job.live} of ${job.size}`, "n"],
    ["Nodes", (job) => job.nodes, "n"],
    ["Step", (job) => duration(job.step_seconds), "n"],
    ["Complete", (job) => percent(job.completeness), "n"],
    ["Since", (job) => time(job.since), "t"],
  ], jobs)];
}

function score(node) {
  return node.anomaly ? node.anomaly.score / node.anomaly.threshold : -1;
}

export function nodesTable(nodes, caption) {
  return table(caption, [
    ["Node", (node) => node.node],
    ["State", (node) => el("span", { class: node.state }, node.state)],
    ["Score", (node) => node.anomaly ? amount(node.anomaly.score) : "not scored", "n"],
    ["Threshold", (node) => amount(node.anomaly?.threshold), "n"],
    ["Verdict", (node) => node.anomaly ? el("span", { class: node.anomaly.state }, node.anomaly.state) : ""],
    ["Metrics", (node) => (node.anomaly?.metrics || []).slice(0, 3).map((metric) => metric.metric || metric.name || "").filter(Boolean).join(", ")],
    ["Ranks", (node) => node.ranks, "n"],
    ["Seen", (node) => time(node.seen), "t"],
  ], nodes);
}

export function linkEnd(end) {
  const name = typeof end.rank === "number" ? "rank " + end.rank : end.address || "unknown";
  return end.node ? `${name} (${end.node})` : name;
}

export function linksTable(links, caption) {
  return table(caption, [
    ["From", (one) => linkEnd(one.from)],
    ["To", (one) => linkEnd(one.to)],
    ["Transport", (one) => one.transport + (one.device ? ", " + one.device : "")],
    ["Errors", (one) => percent(one.error_ratio), "n"],
    ["Retransmits", (one) => percent(one.retransmit_ratio), "n"],
    ["Latency", (one) => duration(one.latency_seconds), "n"],
    ["Throughput", (one) => rate(one.bytes_per_second), "n"],
  ], links);
}

/** What a link loses or sends again, as a share; 0: nothing, or it is not observed. */
export function damage(one) {
  return Math.max(one.error_ratio || 0, one.retransmit_ratio || 0);
}

function headline(incidents) {
  const critical = incidents.items.filter((one) => one.severity === "critical").length;
  const count = incidents.items.length + (incidents.more ? " or more" : "");
  if (!incidents.items.length)
    return "No incident is firing";
  return (incidents.items.length === 1 && !incidents.more ? "1 incident is firing" : count + " incidents are firing") +
    (critical ? `, ${critical} critical` : "");
}

export function overview(main) {
  const parts = ["head", "firing", "jobs", "nodes", "links"].map((name) => el("section", { id: name }));
  let links = [], away = 0, linksRead = 0, isShown = false;

  async function readLinks(jobs) {
    if (Date.now() - linksRead < LINKS_MS)
      return;
    linksRead = Date.now();
    const running = jobs.filter((job) => job.state !== "ended");
    const own = running.filter((job) => !job.owner).slice(0, LINK_JOBS);
    const pages = await Promise.all(own.map((job) => list(jobPath(job.id) + "/links", 4096)
      .catch((problem) => ({ items: [], isAway: problem.code === "not_owner" }))));
    away = running.filter((job) => job.owner).length + pages.filter((page) => page.isAway).length;
    links = pages.flatMap((page, i) => page.items.map((one) => ({ ...one, job: own[i] })))
      .filter((one) => damage(one) > 0).sort((a, b) => damage(b) - damage(a)).slice(0, SHOWN_LINKS);
  }

  async function refresh() {
    const [incidents, jobs, nodes] = await Promise.all([
      list("incidents?state=firing", 200), list("jobs", SHOWN_JOBS), list("nodes", 5000)]);
    await readLinks(jobs.items);
    if (!isShown)
      main.replaceChildren(...parts);
    isShown = true;
    const [head, firing, jobPart, nodePart, linkPart] = parts;
    incidents.items.sort(bySeverity);
    document.title = (incidents.items.length ? `(${incidents.items.length}) ` : "") + "NeuTracer";
    render(head, headline(incidents), (text) => el("h1", {}, text));
    render(firing, [incidents, jobs.items.map((job) => [job.id, job.incidents]), minute()], () =>
      incidents.items.map((one) => card(one, jobs.items)));
    render(jobPart, jobs, () => [el("h2", {}, "Jobs"),
      jobs.items.length ? jobsTable(jobs.items, jobs.more) : el("p", {}, "No job is observed.")]);
    nodes.items.sort((a, b) => score(b) - score(a) || (a.node < b.node ? -1 : 1));
    render(nodePart, nodes.items.slice(0, SHOWN_NODES), (few) => [el("h2", {}, "Nodes"),
      nodesTable(few, "The nodes that behave most unlike their peers"),
      nodes.items.length > few.length ? el("p", {}, link("nodes", `All ${nodes.items.length} nodes`)) : null]);
    render(linkPart, [links, away], () => [el("h2", {}, "Links"), links.length
      ? linksTable(links, "Links with errors or retransmits, of the running jobs")
      : el("p", {}, "No link of the running jobs has errors or retransmits. The matrix of all links is in the view of a job."),
      away ? el("p", {}, `Other aggregators have the links of ${away} running jobs.`) : null]);
  }

  return { refresh, isShown: () => isShown };
}

export function nodes(main) {
  const part = el("section", {});
  let isShown = false;

  async function refresh() {
    const all = await list("nodes", 20000);
    document.title = "NeuTracer: nodes";
    if (!isShown)
      main.replaceChildren(el("h1", {}, "Nodes"), part);
    isShown = true;
    all.items.sort((a, b) => score(b) - score(a) || (a.node < b.node ? -1 : 1));
    render(part, all, () => [nodesTable(all.items.slice(0, 1000), `${all.items.length} nodes, by score`),
      all.items.length > 1000 ? el("p", {}, "The first 1000 are shown; neutracer nodes lists all.") : null]);
  }

  return { refresh, isShown: () => isShown };
}

