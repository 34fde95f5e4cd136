// SPDX-License-Identifier: GPL-3.0-or-later
// A job: its incidents, rank × time, a rank that was chosen, and its links.
import { get, list } from "./client.js";
import { amount, duration, el, jobPath, minute, percent, render, table, time } from "./dom.js";
import { bySeverity, card, namedRanks } from "./incident.js";
import { RankMap } from "./map.js";
import { LinkMatrix } from "./matrix.js";
import { damage, linksTable } from "./overview.js";

const LINKS_MS = 30000;
const SHOWN_LINKS = 20;

function fact(name, value) {
  return el("li", {}, el("span", {}, name + ": "), value);
}

function facts(job) {
  return el("ul", { class: "facts" },
    fact("state", el("span", { class: job.state }, job.state)),
    fact("namespace", job.namespace || "–"),
    fact("ranks", `${job.live} of ${job.size} on ${job.nodes} nodes`),
    fact("step", duration(job.step_seconds)),
    fact("data", percent(job.completeness) + " complete"),
    fact("attempt", String(job.attempt)),
    fact("since", time(job.since)),
    job.ended ? fact("ended", time(job.ended)) : fact("seen", time(job.seen)));
}

function rankTable(rank) {
  const inside = rank.inside;
  const rows = [
    ["State", rank.state], ["Node", rank.node], ["Pod", rank.pod], ["Container", rank.container], ["GPU", rank.gpu],
    ["Process", `${rank.process || "?"}, ${rank.pid}`],
    ["Step", duration(rank.step_seconds)], ["Own work", duration(rank.own_seconds)],
    ["Own work of peers", duration(rank.own_peers_seconds)],
    ["Host work", duration(rank.host_seconds)], ["In communication calls", duration(rank.communication_seconds)],
    ["Tier", rank.tier], ["Steps", amount(rank.steps)], ["Level", String(rank.level)],
    ["Inside", inside ? `${inside.operation || "a call"} since ${time(inside.since)}` : null],
    ["Lost events", amount(rank.lost_events)], ["Seen", time(rank.seen)],
  ].filter(([, value]) => value !== null && value !== "" && value !== "–");
  return table(`Rank ${rank.rank}`, [["What", (row) => row[0]], ["Value", (row) => row[1]]], rows);
}

export function one(main, id, firstRank) {
  const head = el("section", {}), incidentPart = el("section", {}), chosen = el("section", { "aria-live": "polite" });
  const linkTable = el("div", {}), path = jobPath(id);
  const matrix = new LinkMatrix();
  const mapPart = el("section", {}, el("h2", {}, "Ranks over time"));
  const linkPart = el("section", {}, el("h2", {}, "Links"), matrix.figure, linkTable);
  let isShown = false, isAway = false, linksRead = 0, rank = null, wanted = firstRank === undefined ? null : Number(firstRank);
  const map = new RankMap(id, (number) => {
    rank = number;
    readRank().catch(() => {});
  });
  mapPart.append(map.figure, chosen);

  async function readRank() {
    if (rank === null)
      return;
    // A page of one: what follows the rank before.
    const asked = rank, page = await get(`${path}/ranks?limit=1` + (asked ? `&cursor=r${asked - 1}` : ""));
    if (asked !== rank)
      return; // another one was chosen meanwhile
    render(chosen, [asked, page.items], () =>
      page.items[0]?.rank === asked ? rankTable(page.items[0]) : el("p", {}, `Rank ${asked} is not observed.`));
  }

  async function readLinks() {
    if (Date.now() - linksRead < LINKS_MS)
      return;
    linksRead = Date.now();
    const links = await list(path + "/links", 4096);
    const bad = links.items.filter((link) => damage(link) > 0).sort((a, b) => damage(b) - damage(a)).slice(0, SHOWN_LINKS);
    render(linkTable, links, () => {
      matrix.set(links.items, links.over_cap);
      matrix.figure.hidden = !links.items.length;
      if (!links.items.length)
        return el("p", {}, "No link between its ranks is observed.");
      return bad.length ? linksTable(bad, "Links with errors or retransmits") : el("p", {}, "No link has errors or retransmits.");
    });
    matrix.paint();
  }

  function showHead(job) {
    const away = job.owner ? `Another aggregator has the ranks of this job: ${job.owner}.` :
      isAway ? "Another aggregator has the ranks of this job; it states no address." : null;
    render(head, [job, away], () => [el("h1", {}, job.name), facts(job), away ? el("p", { class: "notes" }, away) : null]);
  }

  async function readOwn(job, own) {
    if (isAway)
      await get(path + "/ranks?limit=1"); // is it still away?
    isAway = mapPart.hidden = linkPart.hidden = false;
    map.setMarks(own.map((incident, i) => ({
      ranks: namedRanks(incident), since: Date.parse(incident.since), until: incident.until ? Date.parse(incident.until) : 0, number: i + 1,
    })));
    await map.refresh(job.size);
    if (wanted !== null) {
      map.goTo(wanted);
      wanted = null;
    }
    await Promise.all([readLinks(), readRank()]);
  }

  async function refresh() {
    const [job, incidents] = await Promise.all([get(path), list("incidents?state=firing", 1000)]);
    const own = incidents.items.filter((incident) => job.incidents?.includes(incident.id)).sort(bySeverity);
    document.title = "NeuTracer: " + job.name;
    if (!isShown)
      main.replaceChildren(head, incidentPart, mapPart, linkPart);
    isShown = true;
    showHead(job);
    render(incidentPart, [own, job.id, minute()], () => own.map((incident) => card(incident, [job])));
    try {
      if (!job.owner)
        await readOwn(job, own);
    } catch (problem) {
      if (problem.code !== "not_owner")
        throw problem;
      isAway = true;
    }
    if (job.owner || isAway)
      mapPart.hidden = linkPart.hidden = true;
    showHead(job);
  }

  return {
    refresh, isShown: () => isShown,
    close() {
      map.close();
      matrix.close();
    },
  };
}
