// SPDX-License-Identifier: GPL-3.0-or-later
// Rank × time on a canvas. Only rows in view are drawn, one pixel a cell, and enlarged by the browser: a
// frame costs the same for a job of any size. Rows are all ranks at once, or one rank each.
import { clock, duration, el } from "./dom.js";
import { EVEN, MOST, NO_STEP, Rows, SERIES, UNKNOWN, ZERO } from "./rows.js";

const HEIGHT = 480; // pixels of a map that has more rows
const ROW = 16; // pixels of a row of one rank
const NAMES = 92; // pixels of the names of rows
const AXIS = 22;
const MARKED = 1024; // ranks of an incident that get a frame
const FADED = 3, FULL = 40; // as on the pages of reports: hundredths of a step
const TITLES = { excess: "Excess over peers", own: "Own work", waiting: "Waiting for others" };
const LEGENDS = {
  excess: [[EVEN + 30, "more own work than the peers"], [EVEN - 30, "less"], [UNKNOWN, "not compared"]],
  own: [[ZERO + 90, "work outside of waiting"], [ZERO + 20, "little"], [NO_STEP, "no step ended"], [UNKNOWN, "not known"]],
  waiting: [[ZERO + 90, "waiting for others"], [ZERO + 20, "little"], [NO_STEP, "no step ended"], [UNKNOWN, "not known"]],
};

function colour(series, value) {
  if (value === UNKNOWN)
    return [0x80, 0x80, 0x80, 0x60];
  if (series === "excess") {
    const size = Math.min(Math.abs(value - EVEN), FULL);
    if (size < FADED)
      return [0, 0, 0, 0];
    return value > EVEN ? [0xd5, 0x5e, 0x00, size * 255 / FULL] : [0x00, 0x72, 0xb2, size * 180 / FULL];
  }
  if (value === NO_STEP)
    return [0x80, 0x80, 0x80, 0xc0];
  const strength = Math.min(1, (value - ZERO) / 100);
  return series === "own" ? [0x00, 0x72, 0xb2, 230 * strength] : [0xcc, 0x79, 0xa7, 230 * strength];
}

const palettes = Object.fromEntries(SERIES.map((series) => [series,
  Uint32Array.from({ length: 256 }, (_, value) => {
    const [r, g, b, a] = colour(series, value).map(Math.round);
    return (a << 24 | b << 16 | g << 8 | r) >>> 0;
  })]));

function share(value) {
  if (value === UNKNOWN)
    return "not known";
  if (value === NO_STEP)
    return "no step ended";
  return `${value - ZERO} %${value === MOST ? " or more" : ""} of a step`;
}

function excess(value) {
  if (value === UNKNOWN)
    return "not compared with peers";
  if (value === EVEN)
    return "equal to its peers";
  return `${Math.abs(value - EVEN)} % of a step ${value > EVEN ? "more" : "less"} than its peers`;
}

/** A map of a job; `choose` is called with a rank that was picked, `marks` are incidents with ranks. */
export class RankMap {
  constructor(job, choose) {
    Object.assign(this, { job, choose, series: "excess", single: false, marks: [], row: 0, column: 0, cursor: false, drawn: 0 });
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.space = el("div", {}, this.canvas);
    this.port = el("div", {
      class: "map-port", id: "map", key: "map", tabindex: "0", role: "application", "aria-describedby": "map-help",
      "aria-label": "Rank by time: arrow keys move from cell to cell, N goes to the next culprit, Z changes between all ranks and single ranks, Enter shows the rank",
    }, this.space);
    this.value = el("p", { class: "value", id: "map-value", role: "status", "aria-live": "polite" });
    this.legend = el("ul", { class: "legend" });
    this.buttons = SERIES.map((series) => el("button", { type: "button", "data-series": series, on: { click: () => this.show(series) } }, TITLES[series]));
    this.zoom = el("button", { type: "button", id: "map-zoom", on: { click: () => this.setSingle(!this.single) } });
    this.caption = el("figcaption", { id: "map-help" });
    this.figure = el("figure", { class: "map" }, this.caption,
      el("div", { class: "tools", role: "group", "aria-label": "What is shown" }, this.buttons, this.zoom), this.legend, this.port, this.value);
    this.image = document.createElement("canvas");
    this.colours = matchMedia("(prefers-color-scheme: dark)");
    this.redraw = () => this.draw();
    this.colours.addEventListener("change", this.redraw);
    this.watch = new ResizeObserver(this.redraw);
    this.watch.observe(this.figure);
    this.listen();
    this.show(this.series);
  }

  listen() {
    this.port.addEventListener("scroll", this.redraw, { passive: true });
    this.port.addEventListener("pointermove", (event) => {
      const box = this.port.getBoundingClientRect(), x = event.clientX - box.left - NAMES;
      if (x >= 0)
        this.move(Math.floor((event.clientY - box.top + this.port.scrollTop) / this.rowHeight()),
          Math.floor(x / this.cellWidth()), false);
    });
    this.port.addEventListener("pointerleave", () => {
      if (document.activeElement !== this.port)
        this.hide();
    });
    this.port.addEventListener("click", () => this.pick());
    this.port.addEventListener("focus", () => this.move(this.row, this.column, true));
    this.port.addEventListener("blur", () => this.hide());
    this.port.addEventListener("keydown", (event) => this.press(event));
  }

  press(event) {
    if (event.ctrlKey || event.altKey || event.metaKey)
      return;
    const far = event.shiftKey ? 10 : 1, page = Math.max(1, Math.floor(this.height() / this.rowHeight()) - 1);
    const by = {
      ArrowLeft: [0, -far], ArrowRight: [0, far], ArrowUp: [-far, 0], ArrowDown: [far, 0],
      Home: [0, -1e9], End: [0, 1e9], PageUp: [-page, 0], PageDown: [page, 0],
    }[event.key];
    if (by)
      this.move(this.row + by[0], this.column + by[1], true);
    else if (event.key === "n" || event.key === "N")
      this.next();
    else if (event.key === "z" || event.key === "Z")
      this.setSingle(!this.single);
    else if (event.key === "Enter")
      this.pick();
    else
      return;
    event.preventDefault();
  }

  /** Marks are {ranks, since, until, number, text}. */
  setMarks(marks) {
    this.marks = marks;
    this.draw();
  }

  show(series) {
    this.series = series;
    for (const button of this.buttons)
      button.setAttribute("aria-pressed", String(button.dataset.series === series));
    this.legend.replaceChildren(...LEGENDS[series].map(([value, text]) => {
      const sample = el("canvas", { width: 14, height: 14, "aria-hidden": "true" }), context = sample.getContext("2d");
      const [r, g, b, a] = colour(series, value);
      context.fillStyle = `rgba(${r},${g},${b},${a / 255})`;
      context.fillRect(0, 0, 14, 14);
      return el("li", {}, sample, " " + text);
    }));
    this.draw();
  }

  async setSingle(single) {
    const rank = this.rankAt(this.row);
    this.single = single || !this.ranks || this.ranks <= HEIGHT / ROW;
    await this.reset();
    if (rank !== undefined)
      this.goTo(rank);
  }

  /** The first culprit of a row, or its first rank. */
  rankAt(row) {
    const first = this.rows?.firstRank(row);
    const named = this.marks.flatMap((mark) => mark.ranks).filter((rank) => rank >= first && rank < first + this.rows.perRow);
    return named.length ? Math.min(...named.slice(0, MARKED)) : first;
  }

  async reset() {
    const rows = new Rows(this.job, this.single ? 1 : Math.max(1, Math.ceil((this.ranks || 1) / HEIGHT)), this.redraw);
    this.rows = rows;
    this.port.scrollTop = 0;
    await rows.refresh(0, 1);
    this.layOut();
  }

  layOut() {
    const all = this.rows.perRow;
    this.ranks = this.rows.ranks;
    this.zoom.hidden = this.ranks <= HEIGHT / ROW;
    this.zoom.textContent = this.single ? "Show all ranks at once" : "Show single ranks";
    this.space.style.height = this.rows.rows * this.rowHeight() + AXIS + "px";
    this.port.style.height = this.height() + AXIS + "px";
    this.port.hidden = !this.rows.rows;
    this.caption.textContent = !this.rows.rows ? "No cells of this job are kept: it is too new, or ended before the aggregator began." : `${this.ranks} ranks over the last half hour, in cells of about ten seconds. ` +
      (all > 1 ? `One row shows, in each cell, the rank with the largest excess of ${all}. ` : "") + "Numbered frames mark incidents.";
    this.hint = !this.rows.rows ? "" : "Point at a cell, or use the arrow keys, to read its value. N: next culprit. Z: all or single ranks. Enter: the rank.";
    if (!this.cursor)
      this.value.textContent = this.hint;
    this.draw();
  }

  /** The newest cells of what is in view. The first time it also learns how many ranks there are. */
  async refresh(ranks) {
    if (!this.rows) {
      this.ranks = ranks;
      this.single = ranks <= HEIGHT / ROW;
      await this.reset();
      if (this.single !== (this.ranks <= HEIGHT / ROW))
        await this.setSingle(this.ranks <= HEIGHT / ROW);
      return;
    }
    const [first, last] = this.inView(), before = this.rows.ranks;
    await this.rows.refresh(first, last);
    if (this.rows.ranks !== before && !this.single)
      await this.reset();
    else
      this.layOut();
  }

  rowHeight() {
    return this.single ? ROW : Math.min(ROW, Math.max(1, Math.floor(HEIGHT / Math.max(1, this.rows.rows))));
  }

  height() {
    return Math.min(HEIGHT, Math.max(ROW, (this.rows?.rows || 1) * this.rowHeight()));
  }

  cellWidth() {
    return (this.port.clientWidth - NAMES) / Math.max(1, this.rows.cells.length);
  }

  inView() {
    const first = Math.floor(this.port.scrollTop / this.rowHeight());
    return [first, Math.min(this.rows.rows, first + Math.ceil(this.height() / this.rowHeight()) + 1)];
  }

  draw() {
    if (!this.rows || this.asked)
      return;
    this.asked = requestAnimationFrame(() => {
      this.asked = 0;
      if (this.port.isConnected)
        this.paint();
    });
  }

  paint() {
    const width = this.port.clientWidth, height = this.height() + AXIS, ratio = devicePixelRatio || 1;
    const [first, last] = this.inView(), columns = this.rows.cells.length, context = this.canvas.getContext("2d");
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
      this.canvas.style.width = width + "px";
      this.canvas.style.height = height + "px";
    }
    const style = getComputedStyle(this.port), ink = (name) => style.getPropertyValue("--" + name).trim();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "12px system-ui, sans-serif";
    if (last > first && columns) {
      this.paintCells(context, first, last);
      this.paintMarks(context, first, last, ink);
      this.paintTimes(context, width, ink);
    }
    this.paintNames(context, first, last, ink);
    if (this.cursor)
      this.paintCursor(context, ink);
    this.rows.ensure(first, last).catch(() => {}); // the next refresh reports what fails
    if (columns && this.rows.block(first)) {
      this.port.dataset.rows = `${first}-${last}`;
      this.port.dataset.drawn = String(++this.drawn);
    }
  }

  paintCells(context, first, last) {
    const columns = this.rows.cells.length, palette = palettes[this.series];
    const pixels = new ImageData(columns, last - first), words = new Uint32Array(pixels.data.buffer);
    for (let row = first, at = 0; row < last; row++)
      for (let column = 0; column < columns; column++)
        words[at++] = palette[this.rows.value(this.series, row, column)];
    this.image.width = columns;
    this.image.height = last - first;
    this.image.getContext("2d").putImageData(pixels, 0, 0);
    context.save();
    context.beginPath();
    context.rect(NAMES, 0, columns * this.cellWidth(), this.height());
    context.clip();
    context.imageSmoothingEnabled = false;
    context.drawImage(this.image, NAMES, first * this.rowHeight() - this.port.scrollTop,
      columns * this.cellWidth(), (last - first) * this.rowHeight());
    context.restore();
  }

  /** Pixels of a time: cells are as wide as others, so that a gap has no room. */
  timeToX(ms) {
    const cells = this.rows.cells, at = cells.findIndex((cell) => cell.end > ms);
    if (at < 0)
      return NAMES + cells.length * this.cellWidth();
    const part = Math.max(0, (ms - cells[at].start) / (cells[at].end - cells[at].start));
    return NAMES + (at + part) * this.cellWidth();
  }

  paintMarks(context, first, last, ink) {
    const size = this.rowHeight(), off = size < 8 ? 2 : 0, numbers = new Map();
    context.save();
    context.beginPath();
    context.rect(NAMES, 0, this.port.clientWidth, this.height());
    context.clip();
    for (const mark of this.marks) {
      const from = this.timeToX(mark.since), to = mark.until ? this.timeToX(mark.until) : NAMES + this.rows.cells.length * this.cellWidth();
      for (const row of this.markedRows(mark)) {
        if (row < first - 1 || row > last)
          continue;
        const top = row * size - this.port.scrollTop - off, box = [from, top, Math.max(4, to - from), size + 2 * off];
        context.strokeStyle = ink("ground");
        context.lineWidth = 4;
        context.strokeRect(...box);
        context.strokeStyle = ink("text");
        context.lineWidth = 2;
        context.strokeRect(...box);
        const place = `${Math.round(from)} ${row}`;
        numbers.set(place, { x: from - 4, y: top + size / 2 + off, text: [numbers.get(place)?.text, mark.number].filter(Boolean).join(", ") });
      }
    }
    this.paintNumbers(context, [...numbers.values()], ink);
    context.restore();
  }

  /** Left of the frames: several incidents may begin in one place. */
  paintNumbers(context, numbers, ink) {
    context.font = "700 12px system-ui, sans-serif";
    context.textAlign = "right";
    context.lineWidth = 3;
    context.strokeStyle = ink("ground");
    context.fillStyle = ink("text");
    for (const { x, y, text } of numbers) {
      const middle = Math.max(8, Math.min(this.height() - 8, y)) + 4;
      context.strokeText(text, Math.max(NAMES + 8 * text.length, x), middle);
      context.fillText(text, Math.max(NAMES + 8 * text.length, x), middle);
    }
  }

  markedRows(mark) {
    if (mark.of !== this.rows || mark.at !== this.rows.version) {
      mark.of = this.rows;
      mark.at = this.rows.version;
      mark.rows = [...new Set(mark.ranks.slice(0, MARKED).map((rank) => this.rows.rowOf(rank)))].filter((row) => row >= 0);
    }
    return mark.rows;
  }

  paintTimes(context, width, ink) {
    const cells = this.rows.cells, y = this.height() + 15, places = width < 480 ? 2 : 5;
    context.fillStyle = ink("soft");
    for (let i = 0; i < places; i++) {
      const at = Math.min(cells.length - 1, Math.round(i * cells.length / (places - 1)));
      context.textAlign = i === 0 ? "left" : i === places - 1 ? "right" : "center";
      context.fillText(clock(i === places - 1 ? cells[at].end : cells[at].start), NAMES + Math.min(cells.length, at + (i === places - 1)) * this.cellWidth(), y);
    }
  }

  name(row) {
    const rank = this.rows.firstRank(row), next = this.rows.firstRank(row + 1);
    if (rank === undefined)
      return "…";
    if (this.rows.perRow === 1)
      return "rank " + rank;
    return next === undefined ? `from ${rank}` : `${rank}–${next - 1}`;
  }

  /** Culprits first, then as many others as there is room. */
  paintNames(context, first, last, ink) {
    const size = this.rowHeight(), taken = [];
    const named = new Set(this.marks.flatMap((mark) => this.markedRows(mark)));
    const put = (row, bold) => {
      const middle = (row + .5) * size - this.port.scrollTop;
      const y = Math.max(8, Math.min(this.height() - 8, middle));
      if (middle < 0 || middle > this.height() || taken.some((other) => Math.abs(other - y) < 14))
        return;
      taken.push(y);
      context.font = (bold ? "700 " : "") + "12px system-ui, sans-serif";
      context.fillStyle = ink(bold ? "text" : "soft");
      context.fillText(this.name(row), NAMES - 6, y + 4, NAMES - 8);
    };
    context.textAlign = "right";
    for (const row of named)
      if (row >= first && row < last)
        put(row, true);
    const step = Math.max(1, Math.ceil(15 / size));
    for (let row = Math.ceil(first / step) * step; row < last; row += step)
      if (!named.has(row))
        put(row, false);
  }

  paintCursor(context, ink) {
    context.strokeStyle = ink("info");
    context.lineWidth = 2;
    context.strokeRect(NAMES + this.column * this.cellWidth(), this.row * this.rowHeight() - this.port.scrollTop,
      Math.max(3, this.cellWidth()), Math.max(3, this.rowHeight()));
  }

  move(row, column, follow) {
    if (!this.rows?.rows || !this.rows.cells.length)
      return;
    this.row = Math.max(0, Math.min(this.rows.rows - 1, row));
    this.column = Math.max(0, Math.min(this.rows.cells.length - 1, column));
    this.cursor = true;
    if (follow) {
      const top = this.row * this.rowHeight();
      if (top < this.port.scrollTop)
        this.port.scrollTop = top;
      else if (top + this.rowHeight() > this.port.scrollTop + this.height())
        this.port.scrollTop = top + this.rowHeight() - this.height();
    }
    this.tell();
    this.draw();
  }

  tell() {
    const cell = this.rows.cells[this.column], at = (series) => this.rows.value(series, this.row, this.column);
    const numbers = this.marks.filter((mark) => this.markedRows(mark).includes(this.row)).map((mark) => mark.number);
    this.value.textContent = `${this.name(this.row)}, ${clock(cell.start)} to ${clock(cell.end)} UTC: own work ${share(at("own"))}, ` +
      `waiting ${share(at("waiting"))}; ${excess(at("excess"))}. ` +
      (cell.step ? `A step took ${duration(cell.step)}. ` : "No step ended. ") + (numbers.length ? `Named by incident ${numbers.join(", ")}.` : "");
  }

  hide() {
    this.cursor = false;
    this.value.textContent = this.hint || "";
    this.draw();
  }

  next() {
    const rows = [...new Set(this.marks.flatMap((mark) => this.markedRows(mark)))].sort((a, b) => a - b);
    if (rows.length)
      this.goToRow(rows.find((row) => row > this.row) ?? rows[0]);
  }

  goToRow(row) {
    this.port.scrollTop = Math.max(0, (row + .5) * this.rowHeight() - this.height() / 2);
    this.move(row, this.column || this.rows.cells.length - 1, true);
  }

  goTo(rank) {
    const row = this.rows?.rowOf(rank) ?? -1;
    if (row >= 0)
      this.goToRow(row);
  }

  pick() {
    const rank = this.rankAt(this.row);
    if (rank === undefined)
      return;
    if (this.rows.perRow > 1)
      this.setSingle(true);
    else
      this.choose(rank);
  }

  close() {
    this.colours.removeEventListener("change", this.redraw);
    this.watch.disconnect();
  }
}
