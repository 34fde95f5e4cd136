// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of a job's timeline, read in blocks as they come into view. A block keeps its bytes as they
// were sent; what was added since is appended to the blocks in view.
import { get } from "./client.js";
import { jobPath } from "./dom.js";

export const UNKNOWN = 0, NO_STEP = 1, ZERO = 2, MOST = 255, EVEN = 128;
export const SERIES = ["excess", "own", "waiting"];

const BLOCK_ROWS = 512;
const BLOCKS = 48; // kept: about 14 MB
const CELLS = 180; // kept by the aggregator

function bytes(text) {
  const raw = atob(text), array = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++)
    array[i] = raw.charCodeAt(i);
  return array;
}

function take(page) {
  return {
    first: page.first, ranks: page.row_ranks, rows: page.row_ranks.length, used: 0,
    cells: page.cells.map((cell) => ({ start: Date.parse(cell.start), end: Date.parse(cell.end), step: cell.step_seconds })),
    excess: bytes(page.excess), own: bytes(page.own), waiting: bytes(page.waiting),
  };
}

function sameRanks(a, b) {
  return a.rows === b.rows && a.ranks.every((rank, i) => rank === b.ranks[i]);
}

/** The block with the new cells at its end, without those that are too old. */
function append(block, added) {
  const from = Math.max(0, block.cells.length + added.cells.length - CELLS);
  const kept = block.cells.length - from, width = kept + added.cells.length;
  const joined = { ...block, cells: block.cells.slice(from).concat(added.cells) };
  for (const series of SERIES) {
    const array = new Uint8Array(block.rows * width);
    for (let row = 0; row < block.rows; row++) {
      const end = (row + 1) * block.cells.length, start = row * added.cells.length;
      array.set(block[series].subarray(end - kept, end), row * width);
      array.set(added[series].subarray(start, start + added.cells.length), row * width + kept);
    }
    joined[series] = array;
  }
  return joined;
}

export class Rows {
  /** `changed` is called when a block has come. */
  constructor(job, perRow, changed) {
    Object.assign(this, { job, perRow, changed, rows: 0, ranks: 0, cells: [], clock: 0, version: 0 });
    this.blocks = new Map();
    this.loading = new Set();
  }

  async read(index, since) {
    const page = await get(`${jobPath(this.job)}/timeline?first=${index * BLOCK_ROWS}&limit=${BLOCK_ROWS}&per_row=${this.perRow}` +
      (since ? "&since=" + encodeURIComponent(new Date(since).toISOString()) : ""));
    this.rows = page.rows;
    this.ranks = page.ranks;
    return take(page);
  }

  put(index, block) {
    block.used = ++this.clock;
    this.version++;
    this.blocks.set(index, block);
    // The columns are those of the block with the newest cell.
    if (block.cells.length && (!this.cells.length || block.cells.at(-1).end >= this.cells.at(-1).end))
      this.cells = block.cells;
    if (this.blocks.size > BLOCKS)
      this.blocks.delete([...this.blocks].reduce((a, b) => a[1].used <= b[1].used ? a : b)[0]);
  }

  async load(index) {
    if (this.loading.has(index))
      return;
    this.loading.add(index);
    try {
      this.put(index, await this.read(index));
    } finally {
      this.loading.delete(index);
    }
    this.changed();
  }

  /** Reads the blocks of these rows that are missing. */
  async ensure(first, last) {
    const missing = [];
    for (let index = Math.floor(first / BLOCK_ROWS); index <= Math.floor(Math.max(first, last - 1) / BLOCK_ROWS); index++) {
      const block = this.blocks.get(index);
      if (block)
        block.used = ++this.clock;
      if (!block || block.cells.at(-1)?.end !== this.cells.at(-1)?.end)
        missing.push(block ? this.update(index) : this.load(index));
    }
    await Promise.all(missing);
  }

  async update(index) {
    const block = this.blocks.get(index);
    if (this.loading.has(index))
      return;
    this.loading.add(index);
    try {
      const added = await this.read(index, block.cells.at(-1)?.end);
      if (!added.cells.length && sameRanks(block, added))
        return;
      this.put(index, sameRanks(block, added) ? append(block, added) : await this.read(index));
    } finally {
      this.loading.delete(index);
    }
    this.changed();
  }

  /** Reads what was added to the rows in view. */
  async refresh(first, last) {
    const from = Math.floor(first / BLOCK_ROWS), to = Math.floor(Math.max(first, last - 1) / BLOCK_ROWS);
    for (let index = from; index <= to; index++)
      await (this.blocks.has(index) ? this.update(index) : this.load(index));
  }

  block(row) {
    return this.blocks.get(Math.floor(row / BLOCK_ROWS));
  }

  /** The value of a row at a column, UNKNOWN while it is not read. */
  value(series, row, column) {
    const block = this.block(row), at = row - (block?.first ?? 0);
    if (!block || at >= block.rows)
      return UNKNOWN;
    // Blocks end with the same cell, unless one was not in view for a while.
    const shift = block.cells === this.cells ? 0 : this.shift(block);
    const own = column + shift;
    return own >= 0 && own < block.cells.length ? block[series][at * block.cells.length + own] : UNKNOWN;
  }

  shift(block) {
    if (block.alignedTo !== this.cells) {
      block.alignedTo = this.cells;
      const first = this.cells[0]?.end, at = block.cells.findIndex((cell) => cell.end >= first);
      block.offset = at < 0 ? block.cells.length : at - this.cells.findIndex((cell) => cell.end >= block.cells[at].end);
    }
    return block.offset;
  }

  firstRank(row) {
    const block = this.block(row);
    return block?.ranks[row - block.first];
  }

  /** The row of a rank, by the blocks that are read; -1: none of them has it. */
  rowOf(rank) {
    const guess = this.block(Math.floor(rank / this.perRow));
    for (const block of guess ? [guess, ...this.blocks.values()] : this.blocks.values()) {
      if (!block.rows || rank < block.ranks[0])
        continue;
      let low = 0, high = block.rows - 1; // the last row that begins at the rank or before
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (block.ranks[middle] <= rank)
          low = middle;
        else
          high = middle - 1;
      }
      if (block.ranks[low] === rank || this.perRow > 1)
        return block.first + low;
    }
    return this.perRow === 1 && rank < this.ranks ? rank : -1;
  }
}
