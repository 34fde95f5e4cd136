// SPDX-License-Identifier: GPL-3.0-or-later
// The links of a job as a matrix: who sends in rows, who receives in columns. Ends are ranks, or nodes
// where there are many ranks. A cell sums the links between two ends.
import { duration, el, percent, rate } from "./dom.js";

const MOST = 256; // ends in the matrix
const RANKS = 64; // more: nodes
const SIZE = 480, NAMES = 110;
const KINDS = {
  damage: ["Errors and retransmits", (cell) => cell.damage, [0xd5, 0x5e, 0x00]],
  latency: ["Latency", (cell) => cell.latency, [0xcc, 0x79, 0xa7]],
  bytes: ["Throughput", (cell) => cell.bytes, [0x00, 0x72, 0xb2]],
};

function collect(links) {
  const ranks = new Set(links.flatMap((one) => [one.from.rank, one.to.rank]).filter((rank) => typeof rank === "number"));
  const byNode = ranks.size > RANKS;
  const name = (end) => byNode || typeof end.rank !== "number" ? end.node || end.address || "unknown" : "rank " + end.rank;
  const names = [...new Set(links.flatMap((one) => [name(one.from), name(one.to)]))]
    .sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const shown = names.slice(0, MOST), index = new Map(shown.map((text, i) => [text, i])), cells = new Map();
  for (const one of links) {
    const row = index.get(name(one.from)), column = index.get(name(one.to));
    if (row === undefined || column === undefined)
      continue;
    const key = row * MOST + column, cell = cells.get(key) || { links: 0, damage: 0, latency: null, bytes: null };
    cell.links++;
    cell.damage = Math.max(cell.damage, one.error_ratio || 0, one.retransmit_ratio || 0);
    if (typeof one.latency_seconds === "number")
      cell.latency = Math.max(cell.latency || 0, one.latency_seconds);
    if (typeof one.bytes_per_second === "number")
      cell.bytes = (cell.bytes || 0) + one.bytes_per_second;
    cells.set(key, cell);
  }
  return { names: shown, cells, left: names.length - shown.length, byNode };
}

export class LinkMatrix {
  constructor() {
    Object.assign(this, { kind: "damage", row: 0, column: 0, cursor: false, data: null });
    this.canvas = el("canvas", {
      class: "matrix", key: "matrix", tabindex: "0", role: "application",
      "aria-label": "Links: arrow keys move from cell to cell, rows send, columns receive",
    });
    this.value = el("p", { class: "value", role: "status", "aria-live": "polite" });
    this.note = el("figcaption", {});
    this.buttons = Object.entries(KINDS).map(([kind, [title]]) => el("button", { type: "button", "data-kind": kind, on: { click: () => this.show(kind) } }, title));
    this.figure = el("figure", {}, this.note, el("div", { class: "tools", role: "group", "aria-label": "What is shown" }, this.buttons), this.canvas, this.value);
    this.redraw = () => this.paint();
    this.colours = matchMedia("(prefers-color-scheme: dark)");
    this.colours.addEventListener("change", this.redraw);
    this.watch = new ResizeObserver(this.redraw);
    this.watch.observe(this.figure);
    this.canvas.addEventListener("pointermove", (event) => {
      const box = this.canvas.getBoundingClientRect(), size = this.size();
      this.move(Math.floor((event.clientY - box.top) / size), Math.floor((event.clientX - box.left - NAMES) / size));
    });
    this.canvas.addEventListener("pointerleave", () => document.activeElement !== this.canvas && this.hide());
    this.canvas.addEventListener("focus", () => this.move(this.row, this.column));
    this.canvas.addEventListener("blur", () => this.hide());
    this.canvas.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0], Home: [0, -MOST], End: [0, MOST] }[event.key];
      if (!by)
        return;
      event.preventDefault();
      this.move(this.row + by[0], this.column + by[1]);
    });
    this.show(this.kind);
  }

  set(links, overCap) {
    this.data = collect(links);
    this.note.textContent = `${links.length} links between ${this.data.names.length} ${this.data.byNode ? "nodes" : "ends"}: rows send, columns receive.` +
      (this.data.left ? ` ${this.data.left} more ends are left out.` : "") + (overCap ? ` ${overCap} more links are left out.` : "");
    this.hide();
  }

  show(kind) {
    this.kind = kind;
    for (const button of this.buttons)
      button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
    this.paint();
  }

  size() {
    const count = Math.max(1, this.data?.names.length || 1), room = Math.min(SIZE, (this.figure.clientWidth || SIZE) - NAMES);
    return Math.max(1, Math.min(24, room / count));
  }

  paint() {
    if (!this.data || !this.figure.isConnected)
      return;
    const count = this.data.names.length, size = this.size(), ratio = devicePixelRatio || 1, context = this.canvas.getContext("2d");
    const width = NAMES + Math.ceil(count * size), height = Math.ceil(count * size);
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    this.canvas.style.width = width + "px";
    this.canvas.style.height = height + "px";
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const style = getComputedStyle(this.canvas), ink = (name) => style.getPropertyValue("--" + name).trim();
    const [, read, [r, g, b]] = KINDS[this.kind];
    const most = Math.max(...[...this.data.cells.values()].map((cell) => read(cell) || 0), Number.MIN_VALUE);
    for (const [key, cell] of this.data.cells) {
      const share = (read(cell) || 0) / most, x = NAMES + key % MOST * size, y = Math.floor(key / MOST) * size;
      context.fillStyle = read(cell) ? `rgba(${r},${g},${b},${.15 + .85 * share})` : "rgba(128,128,128,.25)";
      context.fillRect(x, y, Math.max(1, size - 1), Math.max(1, size - 1));
    }
    context.fillStyle = ink("soft");
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "right";
    const step = Math.max(1, Math.ceil(14 / size));
    for (let row = 0; row < count; row += step)
      context.fillText(this.data.names[row], NAMES - 6, (row + .5) * size + 4, NAMES - 8);
    if (this.cursor) {
      context.strokeStyle = ink("info");
      context.lineWidth = 2;
      context.strokeRect(NAMES + this.column * size, this.row * size, Math.max(3, size - 1), Math.max(3, size - 1));
    }
  }

  move(row, column) {
    const count = this.data?.names.length || 0;
    if (!count)
      return;
    this.row = Math.max(0, Math.min(count - 1, row));
    this.column = Math.max(0, Math.min(count - 1, column));
    this.cursor = true;
    const cell = this.data.cells.get(this.row * MOST + this.column);
    this.value.textContent = `${this.data.names[this.row]} to ${this.data.names[this.column]}: ` + (cell
      ? `${cell.links} links, errors and retransmits ${percent(cell.damage)}, latency ${duration(cell.latency)}, throughput ${rate(cell.bytes)}`
      : "no link");
    this.paint();
  }

  hide() {
    this.cursor = false;
    this.value.textContent = "Point at a cell, or use the arrow keys, to read its values.";
    this.paint();
  }

  close() {
    this.colours.removeEventListener("change", this.redraw);
    this.watch.disconnect();
  }
}
