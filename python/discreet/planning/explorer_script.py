"""The style and the script of the page of sliders. The script reads the grid from the page and draws two pictures."""

from __future__ import annotations

__all__ = ["SCRIPT", "STYLE"]

STYLE = """
:root { color-scheme: light dark; --ink: #1c2733; --soft: #44525f; --paper: #fff; --line: #d5dbe1; --box: #eef3f9;
  --edge: #3d6ea8; --one: #0072b2; --two: #c14f00; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8edf2; --soft: #b3bec9; --paper: #14191f; --line: #3a444e; --box: #1e2833; --edge: #6fa3dd;
    --one: #56b4e9; --two: #f0a050; }
}
body { color: var(--ink); background: var(--paper); }
h2 { border-color: var(--line); }
.lead, dt { color: var(--soft); }
.box { background: var(--box); border-color: var(--edge); }
th { border-color: var(--soft); }
td { border-color: var(--line); }
.scroll { overflow-x: auto; }
.scroll table { min-width: 520px; overflow-wrap: normal; }
.sliders { display: grid; grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); gap: 12px 28px; margin: 12px 0; }
.sliders label { display: flex; justify-content: space-between; gap: 8px; }
.sliders output { white-space: nowrap; overflow-wrap: normal; font-variant-numeric: tabular-nums; font-weight: 600; }
.sliders input { width: 100%; margin: 2px 0 0; accent-color: var(--edge); }
.pictures { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 20px; }
figure { margin: 0; min-width: 0; display: flex; flex-direction: column; }
figure > svg { margin-top: auto; }
figcaption { font-weight: 600; margin-bottom: 4px; }
.legend { font-size: 14px; color: var(--soft); display: flex; flex-wrap: wrap; gap: 2px 16px; padding: 0; margin: 4px 0;
  list-style: none; }
.legend svg { display: inline-block; width: 30px; height: 10px; vertical-align: middle; margin-right: 5px; }
svg { overflow: visible; }
svg text { fill: var(--soft); font-size: 12px; }
svg .axis { stroke: var(--line); }
svg .now { stroke: var(--soft); stroke-dasharray: 2 3; }
svg path, svg .key { fill: none; stroke-width: 2.2; }
svg .one { stroke: var(--one); }
svg .two { stroke: var(--two); }
svg .faint { stroke-dasharray: 7 5; }
svg circle { stroke: none; }
svg circle.one { fill: var(--one); }
svg circle.two { fill: var(--two); }
@media (min-width: 900px) { body { max-width: 1080px; } }
"""

SCRIPT = """
"use strict";
const grid = JSON.parse(document.getElementById("grid").textContent);
const names = Object.keys(grid.axes);
const linear = new Set(["exponent"]);
const scaled = (name, value) => linear.has(name) ? value : Math.log(value);
const ends = name => [grid.axes[name][0], grid.axes[name][grid.axes[name].length - 1]];
const state = {};

function valueAt(name, place) {
  const [low, high] = ends(name).map(end => scaled(name, end)), found = low + (high - low) * place / 1000;
  if (linear.has(name)) return Math.round(found * 100) / 100;
  const value = Math.exp(found);
  return ["users", "items", "l0", "items_per_user"].includes(name) ? Math.round(value) : Number(value.toPrecision(2));
}
function placeOf(name, value) {
  const [low, high] = ends(name).map(end => scaled(name, end));
  return Math.round(1000 * Math.min(1, Math.max(0, (scaled(name, value) - low) / (high - low))));
}
function weights(name, axis, value) {
  const x = scaled(name, value);
  if (axis.length < 2) return [[0, 1]];
  let i = 0;
  while (i < axis.length - 2 && x > scaled(name, axis[i + 1])) i++;
  const low = scaled(name, axis[i]), high = scaled(name, axis[i + 1]);
  const t = Math.min(1, Math.max(0, (x - low) / (high - low)));
  return [[i, 1 - t], [i + 1, t]];
}
function logarithms(tables, kind, at) {
  let corners = [[0, 1]];
  for (const name of Object.keys(tables.axes).filter(name => name !== "l0" || kind === "threshold")) {
    const next = [], axis = tables.axes[name];
    for (const [index, weight] of corners)
      for (const [i, w] of weights(name, axis, at[name]))
        if (w > 0) next.push([index * axis.length + i, weight * w]);
    corners = next;
  }
  return [0, 1].map(part => corners.reduce((sum, [i, w]) => sum + w * Math.log1p(tables[kind][2 * i + part]), 0));
}
function nearness(at) {
  // 1 at the shape of the plan, and 0 at the next points of the grid.
  let product = 1;
  for (const name of Object.keys(grid.start.shape)) {
    const x = scaled(name, at[name]), start = scaled(name, grid.start.shape[name]);
    const axis = grid.axes[name].map(value => scaled(name, value));
    const end = x < start ? axis.findLast(value => value < start) : axis.find(value => value > start);
    if (x !== start && end !== undefined) product *= Math.max(0, (x - end) / (start - end));
  }
  return product;
}
function figures(kind, at) {
  const near = nearness(at), coarse = logarithms(grid, kind, at);
  if (near === 0) return coarse.map(Math.expm1);
  const exact = logarithms(grid.start, kind, at), there = logarithms(grid, kind, {...at, ...grid.start.shape});
  return coarse.map((value, part) => Math.max(0, Math.expm1(value + near * (exact[part] - there[part]))));
}
const confirmed = at => figures("confirmed", at);
const threshold = at => figures("threshold", at);

const short = x => x >= 1e6 ? x / 1e6 + "M" : x >= 1e3 ? x / 1e3 + "k" : String(x);
const whole = x => Math.round(x).toLocaleString("en-US");
function shown(name) {
  const value = state[name];
  if (name === "delta") return value.toExponential(0);
  return value >= 1000 ? whole(value) : String(Number(value.toPrecision(3)));
}
function powers(low, high) {
  const found = [];
  for (let p = Math.ceil(Math.log10(low) - 1e-9); p <= Math.log10(high) + 1e-9; p++) found.push(Number("1e" + p));
  return found;
}
function draw(id, x, y, curves, now, label) {
  const svg = document.getElementById(id), width = svg.clientWidth || 400, height = 270;
  const left = 44, right = 12, top = 10, bottom = 42;
  const place = (v, [low, high]) => Math.log(v / low) / Math.log(high / low);
  const sx = v => left + (width - left - right) * place(v, x);
  const floor = height - bottom, sy = v => floor - (floor - top) * place(v, y);
  let parts = "";
  for (const v of powers(...x))
    parts += `<line class="axis" x1="${sx(v)}" x2="${sx(v)}" y1="${top}" y2="${floor}"/>`
      + `<text x="${sx(v)}" y="${floor + 16}" text-anchor="middle">${short(v)}</text>`;
  for (const v of powers(...y))
    parts += `<line class="axis" x1="${left}" x2="${width - right}" y1="${sy(v)}" y2="${sy(v)}"/>`
      + `<text x="${left - 6}" y="${sy(v) + 4}" text-anchor="end">${short(v)}</text>`;
  parts += `<text x="${(left + width - right) / 2}" y="${height - 6}" text-anchor="middle">${label}</text>`;
  if (now) parts += `<line class="now" x1="${sx(now)}" x2="${sx(now)}" y1="${top}" y2="${floor}"/>`;
  for (const [kind, points] of curves) {
    const inside = v => v >= y[0] && v <= y[1], seen = points.filter(([, v]) => inside(v));
    const path = seen.map(([a, b]) => sx(a).toFixed(1) + " " + sy(b).toFixed(1)).join("L");
    if (path) parts += `<path class="${kind}" d="M${path}"/>`;
    if (now && !kind.includes("faint")) {
      const at = points.find(([a]) => a >= now * 0.999);
      if (at && inside(at[1])) parts += `<circle class="${kind}" cx="${sx(now)}" cy="${sy(at[1])}" r="4"/>`;
    }
  }
  svg.setAttribute("height", height);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.innerHTML = parts;
}
function span(low, high, count) {
  return Array.from({length: count + 1}, (_, i) => low * Math.pow(high / low, i / count));
}
function update() {
  for (const name of names) document.getElementById(name + "-value").textContent = shown(name);
  const one = confirmed(state), two = threshold(state);
  const close = `within ${Number((100 * grid.relative_error).toPrecision(3))} %`;
  document.getElementById("summary").textContent =
    `Confirmed counts name about ${whole(one[0])} items, ${whole(one[1])} of them ${close} of the true count. `
    + `A threshold with l0 = ${shown("l0")} names about ${whole(two[0])}, ${whole(two[1])} of them ${close}.`;
  const rhos = [...new Set([...span(...ends("rho"), 40), state.rho])].sort((a, b) => a - b);
  const a = rhos.map(rho => [rho, confirmed({...state, rho})]);
  const b = rhos.map(rho => [rho, threshold({...state, rho})]);
  const part = (list, i) => list.map(([rho, both]) => [rho, both[i]]);
  const most = Math.max(100, ...a.map(([, v]) => v[0]), ...b.map(([, v]) => v[0]));
  draw("named", ends("rho"), [1, most * 1.2], [["one", part(a, 0)], ["one faint", part(a, 1)], ["two", part(b, 0)],
    ["two faint", part(b, 1)]], state.rho, "rho");
  const counts = span(10, state.users, 40), sigma = Math.sqrt(state.l0 / (2 * state.rho));
  draw("noise", [10, Math.max(1000, state.users)], [0.1, Math.max(100, state.users / 10)],
    [["one", counts.map(c => [c, grid.share * c])], ["two", counts.map(c => [c, sigma])],
     ["two faint", counts.map(c => [c, c * lost()])]], 0, "true number of users of an item");
}
function lost() {
  // A user has 1 + x items, x log-normal with a deviation of 1 in the logarithm: integrate over its quantiles.
  const mean = state.items_per_user - 1, steps = 200;
  let kept = 0, all = 0;
  for (let i = 0; i < steps; i++) {
    const z = -4 + 8 * (i + 0.5) / steps, w = Math.exp(-z * z / 2);
    const n = Math.min(state.items, 1 + mean * Math.exp(z - 0.5));
    kept += w * Math.min(n, state.l0);
    all += w * n;
  }
  return Math.max(1 - kept / all, 1e-9);
}
for (const name of names) {
  const input = document.getElementById(name);
  state[name] = Number(input.dataset.value);
  input.value = placeOf(name, state[name]);
  input.addEventListener("input", () => { state[name] = valueAt(name, Number(input.value)); update(); });
}
addEventListener("resize", update);
update();
"""
