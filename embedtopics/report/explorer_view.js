"use strict";
// State of the explorer, small helpers, colours, and the drawing of the maps.
const { about } = Store;
const N_ROWS = Store.n;
const NO_TIME = -(2 ** 31);
const SVG = "http://www.w3.org/2000/svg";
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

const byId = (id) => document.getElementById(id);
const emptyFilter = () => ({
  words: "", topics: new Set(), groups: new Set(), lasso: null, panel: 0, from: null, to: null,
  rows: null, // Uint8Array with 1 for each row that a notebook asked for
});
const state = {
  filter: emptyFilter(), // conditions of the selection, or of B in a comparison
  reference: null, // conditions of A in a comparison
  side: "filter", // the selection in the table
  tool: "move",
  hovered: -1,
  opened: -1,
  lasso: null, // coordinates of the line being drawn
  unfolded: new Set(),
  panel: 0, // the active map
};
// Uint8Array with 1 for each selected row; null for all rows.
const selection = { filter: null, reference: null };
const view = { x: about.span[0] / 2, y: about.span[1] / 2, zoom: 1, scale: 1, fit: 1 };
let atlases = [];

// ---- helpers

// Append a child with a class and a text; texts never become markup.
function add(parent, tag, className, text) {
  const child = document.createElement(tag);
  if (className) child.className = className;
  if (text !== undefined) child.textContent = text;
  parent.append(child);
  return child;
}
function addButton(parent, className, text, onClick) {
  const button = add(parent, "button", className, text);
  button.type = "button";
  if (onClick) button.addEventListener("click", onClick);
  return button;
}
function addShape(parent, tag, attributes) {
  const child = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, value);
  parent.append(child);
  return child;
}
const formatNumber = (value) => value.toLocaleString("en");
const formatShare = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
const plural = (count, noun) => `${formatNumber(count)} ${noun}${count === 1 ? "" : "s"}`;
const formatDay = (minutes) => new Date(minutes * 60000).toISOString().slice(0, 10);
const shorten = (text, length) => (text.length > length ? `${text.slice(0, length - 1)}\u2026` : text);
const announce = (text) => { byId("live").textContent = text; };
const topicName = (topic) => (topic ? about.topics[topic - 1].label : `No ${about.unit}`);
const holders = about.panels.map(({ name }) => {
  const figure = add(byId("maps"), "figure", "panel");
  if (name) add(add(figure, "figcaption"), "bdi", "", shorten(name, 60));
  const holder = add(figure, "div", "map");
  holder.tabIndex = 0;
  holder.setAttribute("role", "application");
  holder.setAttribute("aria-label", name ? `Map of the documents: ${shorten(name, 60)}` : "Map of the documents");
  holder.setAttribute("aria-describedby", "map-help");
  for (let layer = 0; layer < 3; layer += 1) add(holder, "canvas");
  return holder;
});
holders[0].id = "map";
byId("maps").dataset.columns = holders.length === 4 ? 2 : Math.min(holders.length, 3);
const themeOf = [0]; // of no topic, then of each topic; 0 for none
about.themes.forEach(({ topics }, i) => topics.forEach((topic) => { themeOf[topic] = i + 1; }));
const themeName = (i) => (i ? about.themes[i - 1].label : topicName(0));
const groupName = (group) => (group ? about.groups[group - 1] : "(none)");
const cssColor = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isComparing = () => state.reference !== null;

// ---- colours: those of the result, adapted to the light or the dark theme

const isDark = () => document.documentElement.dataset.theme === "dark";
const rgbText = (rgb) => `rgb(${rgb.join(" ")})`;
const packRgba = ([red, green, blue], alpha) => red | green << 8 | blue << 16 | alpha << 24;
const mix = (rgb, other, share) =>
  rgb.map((channel, i) => Math.round(share * channel + (1 - share) * other[i]));
let topicRgb = []; // of no topic, then of each topic
let theme = null;
const topicColor = (topic) => rgbText(topicRgb[topic]);

function luminance(rgb) {
  const linear = rgb.map((channel) => ((channel / 255 + 0.055) / 1.055) ** 2.4);
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}
// Mix a colour with white or black until it has this contrast with the page.
function legible(hex, contrast) {
  const paper = luminance(Scatter.channels(cssColor("--paper-hex")));
  const ink = isDark() ? [255, 255, 255] : [0, 0, 0];
  for (let share = 1; share > 0; share -= 0.05) {
    const rgb = mix(Scatter.channels(hex), ink, share);
    const [low, high] = [luminance(rgb), paper].sort((a, b) => a - b);
    if ((high + 0.05) / (low + 0.05) >= contrast) return rgb;
  }
  return ink;
}
function readTheme() {
  const dark = isDark();
  document.documentElement.style.setProperty("--paper-hex", dark ? "#12171d" : "#ffffff");
  const paper = Scatter.channels(cssColor("--paper-hex"));
  const ofTopic = ({ color }) => (dark ? legible(color, 3) : Scatter.channels(color));
  topicRgb = [dark ? [122, 132, 145] : [150, 158, 168], ...about.topics.map(ofTopic)];
  const pale = topicRgb.map((rgb, topic) => rgb.map((channel, i) =>
    Math.round((topic ? 0.16 : 0.1) * channel + (topic ? 0.84 : 0.9) * paper[i])));
  const ink = dark ? "#ffffff" : "#1b2430";
  const sides = [[0, 0, 0], Scatter.channels(cssColor("--first")),
    Scatter.channels(cssColor("--second")), Scatter.channels(dark ? "#e6eaf0" : "#1b2430")];
  theme = {
    all: Uint32Array.from(topicRgb, (rgb, topic) => packRgba(rgb, topic ? 215 : 130)),
    selected: Uint32Array.from(topicRgb, (rgb) => packRgba(rgb, 215)),
    pale: Uint32Array.from(pale, (rgb) => packRgba(rgb, 200)),
    sides: Uint32Array.from(sides, (rgb) => packRgba(rgb, 215)),
    shade: dark ? "#46566b" : "#a9b6c6",
    paper: cssColor("--paper-hex"),
    ink: cssColor("--ink"),
    muted: cssColor("--muted"),
    halo: dark ? "rgb(18 23 29 / 90%)" : "rgb(255 255 255 / 90%)",
    strong: rgbText(legible(ink, 4.5)),
    names: about.topics.map((topic) => rgbText(legible(topic.color, 5.5))),
  };
}

// Colours and layers of the points: unselected below, then points of no topic, then the others.
const pointColors = new Uint32Array(N_ROWS);
const pointLayers = new Uint8Array(N_ROWS);
function colorRow(row, topic) {
  const isSelected = !selection.filter || selection.filter[row] === 1;
  if (isComparing()) {
    const side = (selection.reference[row] ? 1 : 0) + (isSelected ? 2 : 0);
    return side ? theme.sides[side] : null;
  }
  if (!isSelected) return null;
  return (selection.filter ? theme.selected : theme.all)[topic];
}
function recolor() {
  for (let row = 0; row < N_ROWS; row += 1) {
    const topic = Store.topicOf[row];
    const color = colorRow(row, topic);
    pointColors[row] = color ?? theme.pale[topic];
    const isTop = topic || selection.filter;
    pointLayers[row] = color === null ? 0 : isTop ? 2 : 1;
  }
  for (const atlas of atlases) atlas.ink(pointColors, pointLayers, theme.shade);
  redraw();
}

// ---- drawing: at most once a frame; in less detail while the map moves, in full when it rests

let frameRequest = 0;
let restTimer = 0;
let namesOnMaps = [];

function namesFor(panel) {
  const names = about.panels[panel].names.map(([label, anchor, rows], i) => ({
    label, anchor, rows, height: 12.5 * 1.18, color: theme.names[i],
    font: '650 12.5px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif',
  }));
  return names.sort((a, b) => b.rows - a.rows);
}
function drawMaps(isMoving = false) {
  cancelAnimationFrame(frameRequest);
  frameRequest = 0;
  const areComplete = atlases.map((atlas) => atlas.draw(theme.paper, isMoving));
  namesOnMaps = atlases.map((atlas, panel) => atlas.names(namesFor(panel)));
  drawOverlay();
  if (areComplete.includes(false)) restTimer = setTimeout(redraw, 120);
}
function redraw(isMoving = false) {
  clearTimeout(restTimer);
  frameRequest ||= requestAnimationFrame(() => drawMaps(isMoving));
}
function lassoOn(panel) {
  if (state.lasso) return panel === state.panel && state.lasso;
  return panel === state.filter.panel && state.filter.lasso;
}
// Draw names, marked documents with their neighbours, and the lasso above the points.
function drawOverlay() {
  const marked = [...new Set([state.hovered, state.opened])].filter((row) => row >= 0);
  atlases.forEach((atlas, panel) => atlas.drawOver(namesOnMaps[panel] ?? [], {
    halo: theme.halo,
    ink: theme.ink,
    marked,
    near: marked.length ? Store.near(panel, marked[0]) : [],
    line: lassoOn(panel),
  }));
}
