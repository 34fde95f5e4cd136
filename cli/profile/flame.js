// SPDX-License-Identifier: GPL-3.0-or-later
"use strict";
// Widths are shares of the parent: of a node, what its children leave is its own time.
const flame = document.getElementById("flame");
const search = document.getElementById("search");
const found = document.getElementById("found");
const nodes = Array.from(flame.querySelectorAll(".node"));
const size = (node) => Number(node.dataset.n);
const children = (row) => Array.from(row.children).filter((child) => child.classList.contains("node"));
const total = children(flame).reduce((sum, node) => sum + size(node), 0);

for (const node of nodes) {
  const row = node.querySelector(":scope > .kids");
  const own = size(node) - children(row).reduce((sum, child) => sum + size(child), 0);
  const button = node.querySelector(":scope > button");
  node.style.flexGrow = size(node);
  button.title = `${button.textContent}\n${size(node)} samples, ${(100 * size(node) / total).toFixed(1)} %`;
  if (own > 0) {
    const rest = document.createElement("i");
    rest.style.flex = `${own} 1 0`;
    row.append(rest);
  }
}

function reset() {
  for (const element of flame.querySelectorAll(".aside, .whole"))
    element.classList.remove("aside", "whole");
}

function zoom(node) {
  reset();
  for (let at = node; at !== flame; at = at.parentElement) {
    if (!at.classList.contains("node"))
      continue;
    if (at !== node)
      at.classList.add("whole");
    for (const other of at.parentElement.children)
      if (other !== at && other.tagName !== "P")
        other.classList.add("aside");
  }
}

function mark() {
  const wanted = search.value.toLowerCase();
  let count = 0;
  for (const node of nodes) {
    const button = node.querySelector(":scope > button");
    const hit = wanted !== "" && button.textContent.toLowerCase().includes(wanted);
    button.classList.toggle("found", hit);
    // Of nested hits only the outermost one counts.
    if (hit && !node.parentElement.closest(".hit"))
      count += size(node);
    node.classList.toggle("hit", hit);
  }
  found.textContent = wanted === "" ? "" : `${(100 * count / total).toFixed(1)} % of the samples`;
}

flame.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button)
    zoom(button.parentElement);
});
document.getElementById("reset").addEventListener("click", reset);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape")
    reset();
});
search.addEventListener("input", mark);
