// SPDX-License-Identifier: GPL-3.0-or-later
// Shows the values of heatmap cells, under the pointer and by the arrow keys. Nothing else on the page
// needs a script. The values are in attributes of the page.
"use strict";

const none = 0, even = 128, most = 255;

function bytes(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

function time(map, ms) {
  if (map.relative)
    return "+" + (ms / 1000).toFixed(1) + " s";
  return new Date(ms).toISOString().replace("T", " ");
}

function amount(value) {
  if (value === none)
    return "not compared";
  if (value === even)
    return "equal to its peers";
  const part = Math.abs(value - even) + " % of a step";
  if (value < even)
    return part + " less than its peers";
  return part + (value === most ? " or more above its peers" : " more than its peers");
}

function describe(map, row, column) {
  const name = map.names[row];
  return (name.includes("–") ? "ranks " : "") + name + ", " + time(map, map.times[column]) + " to " +
    time(map, map.times[column + 1]) + ": " + amount(map.cells[row * map.columns + column]);
}

function attach(plot) {
  const map = {
    columns: Number(plot.dataset.columns),
    rows: Number(plot.dataset.rows),
    relative: plot.dataset.relative === "1",
    names: plot.dataset.names.split(","),
    times: plot.dataset.times.split(",").map(Number),
    cells: bytes(plot.dataset.cells),
  };
  const svg = plot.querySelector("svg");
  const value = plot.closest("figure").querySelector(".value");
  const cursor = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  let row = 0, column = 0, shown = false;

  cursor.setAttribute("class", "cursor");
  function show(y, x) {
    row = Math.max(0, Math.min(map.rows - 1, y));
    column = Math.max(0, Math.min(map.columns - 1, x));
    cursor.setAttribute("x", 100 * column / map.columns + "%");
    cursor.setAttribute("y", 100 * row / map.rows + "%");
    cursor.setAttribute("width", 100 / map.columns + "%");
    cursor.setAttribute("height", 100 / map.rows + "%");
    if (!shown)
      svg.append(cursor);
    shown = true;
    value.textContent = describe(map, row, column);
  }
  function hide() {
    cursor.remove();
    shown = false;
    value.textContent = hint;
  }
  const hint = "Point at a cell, or use the arrow keys, to read its value.";

  plot.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    show(Math.floor((event.clientY - box.top) / box.height * map.rows),
      Math.floor((event.clientX - box.left) / box.width * map.columns));
  });
  plot.addEventListener("pointerleave", () => {
    if (document.activeElement !== plot)
      hide();
  });
  plot.addEventListener("focus", () => show(row, column));
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const far = event.shiftKey ? 10 : 1;
    const by = {
      ArrowLeft: [0, -far], ArrowRight: [0, far], ArrowUp: [-far, 0], ArrowDown: [far, 0],
      Home: [0, -map.columns], End: [0, map.columns], PageUp: [-map.rows, 0], PageDown: [map.rows, 0],
    }[event.key];
    if (!by)
      return;
    event.preventDefault();
    show(row + by[0], column + by[1]);
  });
  plot.tabIndex = 0;
  plot.setAttribute("role", "application");
  plot.setAttribute("aria-label", "Values of the heatmap: arrow keys move from cell to cell");
  value.textContent = hint;
}

for (const plot of document.querySelectorAll(".plot"))
  attach(plot);
