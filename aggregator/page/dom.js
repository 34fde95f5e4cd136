// SPDX-License-Identifier: GPL-3.0-or-later
// Elements and texts. Data becomes text nodes and never markup; there is no innerHTML on this page.

/** An element. Properties: attributes by name; `on`: listeners; `key`: keeps focus and open state. */
export function el(tag, properties, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false)
      continue;
    if (name === "on")
      for (const [event, listener] of Object.entries(value))
        node.addEventListener(event, listener);
    else if (name === "key")
      node.dataset.key = value;
    else
      node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

const shown = new WeakMap();

/** Fills a container from data, if the data has changed. Focus and open details are kept by key. */
export function render(container, data, make) {
  const text = JSON.stringify(data);
  if (shown.get(container) === text)
    return false;
  shown.set(container, text);
  const active = container.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
  const toggled = new Map([...container.querySelectorAll("details[data-key]")].map((d) => [d.dataset.key, d.open]));
  container.replaceChildren(...[make(data)].flat(9).filter(Boolean));
  for (const details of container.querySelectorAll("details[data-key]"))
    if (toggled.has(details.dataset.key))
      details.open = toggled.get(details.dataset.key);
  if (active)
    container.querySelector(`[data-key="${CSS.escape(active)}"]`)?.focus();
  return true;
}

/** A table: columns are [title, cell of an item, class]; the first one heads its row. */
export function table(caption, columns, items) {
  return el("div", { class: "scroll" }, el("table", {},
    el("caption", {}, caption),
    el("thead", {}, el("tr", {}, columns.map(([title, , kind]) => el("th", { scope: "col", class: kind }, title)))),
    el("tbody", {}, items.map((item) => el("tr", {}, columns.map(([, cell, kind], i) => {
      const content = cell(item);
      return el(i ? "td" : "th", { scope: i ? undefined : "row", class: kind },
        content === null || content === undefined || content === "" ? "–" : content);
    }))))));
}

export function time(text) {
  return text ? new Date(text).toISOString().replace("T", " ").replace(/\.\d+Z$|Z$/, " UTC") : "–";
}

export function clock(ms) {
  return new Date(ms).toISOString().slice(11, 19);
}

export function span(seconds) {
  if (!(seconds >= 0))
    return "–";
  const units = [["d", 86400], ["h", 3600], ["min", 60]];
  const at = units.findIndex(([, size]) => seconds >= size);
  if (at < 0)
    return Math.round(seconds) + " s";
  const [unit, size] = units[at];
  const [small, part] = units[at + 1] || ["s", 1];
  const rest = Math.floor(seconds % size / part);
  return Math.floor(seconds / size) + " " + unit + (rest ? ` ${rest} ${small}` : "");
}

/** Seconds from that time to another one, or to now. */
export function age(since, until) {
  return span(((until ? Date.parse(until) : Date.now()) - Date.parse(since)) / 1000);
}

/** For render(): what shows an age is drawn anew every minute. */
export function minute() {
  return Math.floor(Date.now() / 60000);
}

/** Three significant digits with a unit of the given steps. */
export function amount(value, unit = "") {
  if (typeof value !== "number")
    return "–";
  const digits = Math.abs(value) >= 100 ? Math.round(value).toString() : Number(value.toPrecision(3)).toString();
  return unit ? digits + " " + unit : digits;
}

export function duration(seconds) {
  if (typeof seconds !== "number")
    return "–";
  const [unit, factor] = seconds >= 1 ? ["s", 1] : seconds >= 1e-3 ? ["ms", 1e3] : ["µs", 1e6];
  return amount(seconds * factor, unit);
}

export function rate(bytes) {
  if (typeof bytes !== "number")
    return "–";
  const at = Math.min(4, Math.max(0, Math.floor(Math.log10(Math.max(1, bytes)) / 3)));
  return amount(bytes / 1000 ** at, ["B", "kB", "MB", "GB", "TB"][at] + "/s");
}

export function percent(share) {
  return typeof share === "number" ? amount(100 * share, "%") : "–";
}

export function link(path, text, key) {
  return el("a", { href: "#/" + path, key: key || path }, text);
}

export function jobPath(id) {
  return "jobs/" + encodeURIComponent(id);
}

export function incidentPath(id) {
  return "incidents/" + encodeURIComponent(id);
}
