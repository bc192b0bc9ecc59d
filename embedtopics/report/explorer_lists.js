"use strict";
// The table of documents, one document, characteristic words, bars of topics and groups, the timeline.

// ---- the table: only the visible rows exist as elements

const ROW_HEIGHT = 46; // pixels
const MAX_TABLE_ROWS = 300000; // browsers cannot scroll further
const N_LISTED = 10;
const table = byId("table");
const tableBody = byId("pad");
let tableRows = new Uint32Array(0);
let latestFill = 0;

function showTable() {
  const rows = state.side === "reference" && isComparing() ? selection.reference : selection.filter;
  const total = countRows(rows);
  const count = Math.min(total, MAX_TABLE_ROWS);
  tableRows = Uint32Array.from(listRows(rows, count));
  const limit = count < total ? `, the first ${formatNumber(count)}` : "";
  byId("texts-title").textContent = `${plural(total, "document")}${limit}`;
  table.setAttribute("aria-rowcount", String(count));
  tableBody.style.height = `${count * ROW_HEIGHT}px`;
  table.scrollTop = 0;
  const choice = byId("side-choice");
  choice.hidden = !isComparing();
  choice.textContent = "";
  for (const [side, name] of [["reference", "A"], ["filter", "B"]]) {
    const button = addButton(choice, "", name, () => { state.side = side; showTable(); });
    button.setAttribute("aria-pressed", String(state.side === side));
  }
  fillTable();
}
async function fillTable() {
  const number = latestFill += 1;
  const first = Math.max(Math.floor(table.scrollTop / ROW_HEIGHT) - 4, 0);
  const n = Math.ceil(table.clientHeight / ROW_HEIGHT) + 9;
  const rows = [...tableRows.subarray(first, Math.min(first + n, tableRows.length))];
  const texts = await Promise.all(rows.map((row) => Store.text(row)));
  const ids = await Promise.all(rows.map((row) => Store.id(row)));
  if (number !== latestFill) return;
  const focused = document.activeElement?.dataset?.place;
  tableBody.textContent = "";
  rows.forEach((row, k) => addTableRow(row, first + k, first, focused, texts[k], ids[k]));
}
function addTableRow(row, place, first, focused, text, id) {
  const line = add(tableBody, "div");
  line.setAttribute("role", "row");
  line.setAttribute("aria-rowindex", String(place + 1));
  line.setAttribute("aria-selected", String(row === state.opened));
  line.dataset.place = String(place);
  line.tabIndex = place === Math.max(Number(focused ?? first), first) ? 0 : -1;
  line.style.top = `${place * ROW_HEIGHT}px`;
  const [dot, body, facts] = ["dot", "text", "what"].map((name) => {
    const cell = add(line, "span", name);
    cell.setAttribute("role", "cell");
    return cell;
  });
  const topic = Store.topicOf[row];
  dot.style.background = topicColor(topic);
  dot.setAttribute("aria-label", topicName(topic));
  body.dir = "auto";
  addHighlighted(body, text.slice(0, 400));
  add(facts, "span", "", topicName(topic));
  add(facts, "span", "", factsOf(row, id).join(" \u00b7 "));
  if (focused === String(place)) line.focus({ preventScroll: true });
}
function factsOf(row, id) {
  const facts = [];
  if (Store.times && Store.times[row] !== NO_TIME) facts.push(formatDay(Store.times[row]));
  if (Store.groups && Store.groups[row]) facts.push(groupName(Store.groups[row]));
  // Last: a long id would hide the date.
  return [...facts, about.hasIds ? id : `row ${formatNumber(Store.rowNumber(row) + 1)}`];
}
// Append a text with the searched words marked.
function addHighlighted(parent, text) {
  const pieces = Store.pieces(state.filter.words).map(({ text: piece }) =>
    piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  if (!pieces.length) { parent.append(text); return; }
  // Scripts without spaces have no word boundaries.
  const spaceless = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
  const patterns = pieces.map((piece) => (
    spaceless.test(piece) ? piece : `(?<![\\p{L}\\p{N}])${piece}[\\p{L}\\p{N}\\p{M}]*`));
  const normalized = text.normalize("NFC");
  let position = 0;
  for (const match of normalized.matchAll(new RegExp(patterns.join("|"), "giu"))) {
    parent.append(normalized.slice(position, match.index));
    add(parent, "mark", "", match[0]);
    position = match.index + match[0].length;
  }
  parent.append(normalized.slice(position));
}
async function moveInTable(event) {
  const place = Number(document.activeElement.dataset.place ?? 0);
  if (event.key === "Enter") openDocument(tableRows[place]);
  const steps = {
    ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity,
  };
  if (!(event.key in steps)) return;
  event.preventDefault();
  const next = Math.min(Math.max(place + steps[event.key], 0), tableRows.length - 1);
  const top = next * ROW_HEIGHT;
  const bottom = top + ROW_HEIGHT;
  if (top < table.scrollTop) table.scrollTop = top;
  if (bottom > table.scrollTop + table.clientHeight) table.scrollTop = bottom - table.clientHeight;
  await fillTable();
  tableBody.querySelector(`[data-place="${next}"]`)?.focus({ preventScroll: true });
}
table.addEventListener("scroll", fillTable);
table.addEventListener("click", (event) => {
  const line = event.target.closest("[data-place]");
  if (line) openDocument(tableRows[Number(line.dataset.place)]);
});
table.addEventListener("keydown", moveInTable);

// ---- one document

function closeDocument() {
  openDocument(-1);
  holders[state.panel].focus();
}
async function openDocument(row, takesFocus = true) {
  state.opened = row;
  const card = byId("document");
  card.hidden = row < 0;
  card.textContent = "";
  drawOverlay();
  if (row < 0) return;
  const [text, id, url] = await Promise.all([Store.text(row), Store.id(row), Store.url(row)]);
  if (state.opened !== row) return;
  card.textContent = "";
  const line = add(card, "div", "line");
  const heading = add(line, "strong");
  add(heading, "span", "dot").style.background = topicColor(Store.topicOf[row]);
  heading.append(` ${topicName(Store.topicOf[row])}`);
  addButton(line, "", "\u00d7", closeDocument).setAttribute("aria-label", "Close");
  const body = add(card, "div", "text");
  body.dir = "auto";
  body.tabIndex = 0;
  addHighlighted(body, text || "(this page has no texts)");
  addFooter(card, row, text, id, url);
  addShares(card, row);
  await addNeighbors(card, row);
  if (takesFocus) card.scrollIntoView({ block: "nearest" });
  announce(`${topicName(Store.topicOf[row])}: ${text.slice(0, 300)}`);
  for (const tableRow of tableBody.children) {
    const isOpened = tableRows[Number(tableRow.dataset.place)] === row;
    tableRow.setAttribute("aria-selected", String(isOpened));
  }
  drawOverlay();
}
function addFooter(card, row, text, id, url) {
  const footer = add(card, "p", "note", factsOf(row, id).join(" \u00b7 "));
  const nRepeats = Store.repeats[Store.documentOf[row]];
  if (nRepeats > 1) footer.append(` \u00b7 ${formatNumber(nRepeats)} rows share this text`);
  if (about.cutAt && text.length >= about.cutAt) {
    footer.append(" \u00b7 cut to limit the size of the page");
  }
  if (!/^https?:\/\//i.test(url)) return;
  footer.append(" \u00b7 ");
  const link = add(footer, "a", "", shorten(url, 70));
  link.href = url;
  link.rel = "noopener noreferrer";
  link.target = "_blank";
}
// The share of each topic in the text that a passage is of.
function addShares(card, row) {
  if (!Store.wholes) return;
  const rows = [...Store.wholes.keys()].filter((other) => Store.wholes[other] === Store.wholes[row]);
  const counts = countBy(rows.map((other) => Store.topicOf[other]), about.topics.length + 1);
  add(card, "h3", "", `Topics of the whole text (${plural(rows.length, "passage")})`);
  const items = add(card, "ul", "near");
  for (const topic of [...counts.keys()].sort((a, b) => counts[b] - counts[a])) {
    if (!counts[topic]) break;
    const item = add(items, "li", "share");
    add(item, "span", "dot").style.background = topicColor(topic);
    add(item, "bdi", "", topicName(topic));
    add(item, "span", "note", formatShare(counts[topic] / rows.length));
  }
}
// The nearest documents on each map, and the number of lists with each of them.
async function addNeighbors(card, row) {
  const lists = about.panels.map((_, panel) => Store.near(panel, row));
  const counts = new Map();
  for (const near of lists.flat()) counts.set(near, (counts.get(near) ?? 0) + 1);
  const texts = new Map(await Promise.all([...counts.keys()].map(async (near) =>
    [near, await Store.text(near)])));
  if (state.opened !== row) return;
  lists.forEach((list, panel) => {
    const { name, depth } = about.panels[panel];
    if (!depth) return;
    add(card, "h3", "", `Nearest by ${name}`);
    if (!list.length) add(card, "p", "note", "none: no similarity to other documents");
    const items = add(card, "ol", "near");
    for (const near of list) {
      const button = addButton(add(items, "li"));
      button.dataset.row = String(near);
      add(button, "span", "dot").style.background = topicColor(Store.topicOf[near]);
      add(button, "bdi", "", texts.get(near).slice(0, 160)).dir = "auto";
      add(button, "span", "note", describeLists(counts.get(near), lists.length));
    }
  });
}
function describeLists(count, nLists) {
  if (nLists < 2) return "";
  if (count === nLists) return "in every list";
  return count === 1 ? "only here" : `in ${count} of ${nLists}`;
}
// Elements with a row open and mark its document.
document.addEventListener("click", (event) => {
  const button = event.target.closest("[data-row]");
  if (!button) return;
  openDocument(Number(button.dataset.row));
  byId("maps").scrollIntoView({ block: "nearest" });
});
for (const kind of ["pointerover", "pointerout"]) {
  document.addEventListener(kind, (event) => {
    const button = event.target.closest("[data-row]");
    if (!button) return;
    state.hovered = kind === "pointerover" ? Number(button.dataset.row) : -1;
    drawOverlay();
  });
}

// ---- characteristic words of the selection

function documentWeights(rows, exclude) {
  const weights = new Float64Array(Store.nDocuments);
  for (let row = 0; row < N_ROWS; row += 1) {
    const isIn = (!rows || rows[row]) && !(exclude && exclude[row]);
    if (isIn) weights[Store.documentOf[row]] += 1;
  }
  return weights;
}
// Compare the selection with all others, or A with B without the rows of both.
function compareWords() {
  if (!isComparing()) return Store.keyness(documentWeights(selection.filter));
  const filter = selection.filter ?? new Uint8Array(N_ROWS).fill(1);
  const both = selection.reference.map((isIn, row) => (isIn && filter[row] ? 1 : 0));
  return Store.keyness(documentWeights(selection.reference, both), documentWeights(filter, both));
}
async function showWords() {
  const part = byId("words-part");
  const list = byId("words");
  const hasSelection = selection.filter || isComparing();
  if (!hasSelection || !await Store.loadIndex()) { part.hidden = true; return; }
  const words = compareWords();
  const significant = words.filter((word) => Math.abs(word.z) > 1.96);
  const positive = significant.filter((word) => word.z > 0).slice(0, N_LISTED);
  const negative = significant.filter((word) => word.z < 0).slice(-N_LISTED).reverse();
  part.hidden = false;
  part.querySelector("h2").textContent = isComparing()
    ? "Words characteristic of A and B" : "Characteristic words";
  const reference = isComparing() ? "the other selection" : "all others";
  byId("words-note").textContent = significant.length
    ? `Log-odds with 95 % intervals against ${reference}; the numbers are occurrences in each.`
    : "None: too few words, or no significant difference.";
  list.textContent = "";
  const listed = [...positive, ...negative];
  const low = Math.min(...listed.map((word) => word.low), 0);
  const high = Math.max(...listed.map((word) => word.high), 0);
  const scale = (value) => 2 + 196 * (value - low) / Math.max(high - low, 0.1);
  for (const word of positive) addWord(list, word, scale);
  if (positive.length && negative.length) {
    add(list, "p", "note", isComparing() ? "Characteristic of B" : "Rarer than in all others");
  }
  for (const word of negative) addWord(list, word, scale);
  if (significant.length) addAxis(list, low, high, words.length);
}
function addWord(list, { term, effect, low, high, counts }, scale) {
  const line = add(list, "div", "term");
  const name = addButton(line, "", undefined, () => searchFor(`"${term}"`));
  name.title = `Search for ${term}`;
  add(name, "bdi", "", term);
  const svg = addShape(line, "svg", { viewBox: "0 0 200 14", preserveAspectRatio: "none" });
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label",
    `log-odds ${effect.toFixed(1)}, from ${low.toFixed(1)} to ${high.toFixed(1)}`);
  const sideColor = effect > 0 ? "--first" : "--second";
  const ink = cssColor(isComparing() ? sideColor : "--ink");
  const zero = scale(0);
  addShape(svg, "line", { x1: zero, x2: zero, y1: 0, y2: 14, stroke: cssColor("--edge") });
  addShape(svg, "line", {
    x1: scale(low), x2: scale(high), y1: 7, y2: 7, stroke: ink, "stroke-width": 1.5,
  });
  addShape(svg, "rect", { x: scale(effect) - 2, y: 4, width: 4, height: 6, fill: ink });
  add(line, "span", "figures", `${formatNumber(counts[0])} : ${formatNumber(counts[1])}`);
}
function addAxis(list, low, high, nWords) {
  const axis = add(list, "div", "axis");
  add(axis, "span");
  const ends = add(axis, "span", "ends");
  for (const end of [low, high]) add(ends, "span", "", end ? end.toFixed(1) : "0");
  add(axis, "span", "n", `of ${formatNumber(nWords)}`);
}

// ---- topics and groups: bars, with the share of all documents as a line

function countBy(numbers, nNames, rows) {
  const counts = new Uint32Array(nNames);
  numbers.forEach((number, row) => { if (!rows || rows[row]) counts[number] += 1; });
  return counts;
}
// The counts and shares of topics or groups, and their order: by share, the row without one last.
function summarize({ numbers, labels }) {
  const all = countBy(numbers, labels.length, null);
  const sides = isComparing() ? [selection.reference, selection.filter] : [selection.filter];
  const counts = sides.map((rows) => countBy(numbers, labels.length, rows));
  const shares = counts.map((of) => {
    const total = Math.max(of.reduce((a, b) => a + b, 0), 1);
    return [...of].map((count) => count / total);
  });
  const highest = (i) => Math.max(...shares.map((share) => share[i]));
  const order = [...labels.keys()].filter((i) => all[i]).sort((a, b) =>
    (a === 0) - (b === 0) || highest(b) - highest(a) || all[b] - all[a] || a - b);
  const ofAll = [...all].map((count) => count / Math.max(N_ROWS, 1));
  const scale = Math.max(...shares.flat(), ...ofAll, 1e-9);
  return { counts, shares, order, ofAll, scale };
}
// Show bars: `numbers` of the rows, `labels`, `colorOf` (optional), `chosen` and `choose`.
function showBars(holder, name, bars) {
  const summary = summarize(bars);
  const { order, shares } = summary;
  const isUnfolded = state.unfolded.has(name);
  const shown = isUnfolded ? order : order.filter((i, place) => bars.chosen.has(i)
    || (place < N_LISTED + 2 && shares.some((share) => share[i])));
  const focused = holder.contains(document.activeElement)
    ? document.activeElement.dataset.item : null;
  holder.textContent = "";
  for (const i of shown) addBar(holder, i, bars, summary);
  if (shown.length < order.length || isUnfolded) {
    const text = isUnfolded ? "Show fewer" : `and ${formatNumber(order.length - shown.length)} more`;
    addButton(holder, "more", text, () => {
      state.unfolded = toggled(state.unfolded, name);
      showBars(holder, name, bars);
    });
  }
  if (focused !== null) holder.querySelector(`[data-item="${focused}"]`)?.focus();
}
function addBar(holder, i, { labels, colorOf, chosen, choose }, { counts, shares, ofAll, scale }) {
  const button = addButton(holder, "row", undefined, () => choose(i));
  button.dataset.item = String(i);
  button.setAttribute("aria-pressed", String(chosen.has(i)));
  button.title = labels[i];
  const dot = add(button, "span", colorOf ? "dot" : "");
  if (colorOf) dot.style.background = colorOf(i);
  add(button, "bdi", "", labels[i]).dir = "auto";
  const svg = addShape(button, "svg", { viewBox: "0 0 92 12", preserveAspectRatio: "none", "aria-hidden": "true" });
  const height = 10 / shares.length;
  const plain = colorOf ? colorOf(i) : cssColor("--muted");
  shares.forEach((share, side) => addShape(svg, "rect", {
    x: 0, y: 1 + side * height, height: height - (isComparing() ? 0.5 : 0),
    width: 90 * share[i] / scale,
    fill: isComparing() ? cssColor(side ? "--second" : "--first") : plain,
  }));
  if (selection.filter || isComparing()) {
    const x = 90 * ofAll[i] / scale;
    addShape(svg, "line", {
      x1: x, x2: x, y1: 0, y2: 12, stroke: cssColor("--ink"), "stroke-width": 1.5,
    });
  }
  add(button, "span", "figures", isComparing()
    ? `${formatShare(shares[0][i])} : ${formatShare(shares[1][i])}`
    : `${formatNumber(counts[0][i])}, ${formatShare(shares[0][i])}`);
}
function showThemes() {
  byId("themes-part").hidden = !about.themes.length;
  if (!about.themes.length) return;
  const topicsOf = [[0], ...about.themes.map(({ topics }) => topics)];
  const { topics: chosen } = state.filter;
  const isChosen = (theme) => topicsOf[theme].every((topic) => chosen.has(topic));
  showBars(byId("themes"), "themes", {
    numbers: Array.from(Store.topicOf, (topic) => themeOf[topic]),
    labels: topicsOf.map((_, theme) => themeName(theme)),
    colorOf: null,
    chosen: new Set([...topicsOf.keys()].filter(isChosen)),
    choose: (theme) => {
      const others = [...chosen].filter((topic) => !topicsOf[theme].includes(topic));
      changeFilter({ topics: new Set(isChosen(theme) ? others : [...chosen, ...topicsOf[theme]]) });
    },
  });
}
function showTopics() {
  showBars(byId("topics"), "topics", {
    numbers: Store.topicOf,
    labels: [topicName(0), ...about.topics.map((topic) => topic.label)],
    colorOf: topicColor,
    chosen: state.filter.topics,
    choose: (topic) => changeFilter({ topics: toggled(state.filter.topics, topic) }),
  });
}
function showGroups() {
  byId("groups-part").hidden = !Store.groups;
  if (!Store.groups) return;
  byId("groups-title").textContent = `By ${about.columns.group}`;
  showBars(byId("groups"), "groups", {
    numbers: Store.groups,
    labels: ["(none)", ...about.groups],
    colorOf: null,
    chosen: state.filter.groups,
    choose: (group) => changeFilter({ groups: toggled(state.filter.groups, group) }),
  });
}

// ---- the timeline: bins of days, weeks, months or years; a range is chosen by bins

let timeline = null;

// Return the unit, the edge of bin k, and the length of a bin's name in ISO format.
function binsFor(low, days) {
  const start = new Date(low * 60000);
  const [year, month, day] = [start.getUTCFullYear(), start.getUTCMonth(), start.getUTCDate()];
  if (days <= 100) return { unit: "day", edge: (k) => Date.UTC(year, month, day + k), digits: 10 };
  if (days <= 700) {
    return { unit: "week", edge: (k) => Date.UTC(year, month, day + 7 * k), digits: 10 };
  }
  if (days <= 3000) return { unit: "month", edge: (k) => Date.UTC(year, month + k, 1), digits: 7 };
  const every = Math.max(Math.ceil(days / 365.25 / 100), 1);
  const edge = (k) => new Date(0).setUTCFullYear(year + k * every, 0, 1);
  return { unit: every > 1 ? `${every} years` : "year", edge, digits: 4 };
}
function binOf(time, edges) {
  let [first, last] = [0, edges.length - 1];
  while (first < last - 1) {
    const middle = (first + last) >> 1;
    if (edges[middle] <= time) first = middle; else last = middle;
  }
  return first;
}
function readTimes() {
  if (!Store.times) return;
  let [low, high] = [Infinity, -Infinity];
  for (const time of Store.times) {
    if (time === NO_TIME) continue;
    low = Math.min(low, time);
    high = Math.max(high, time);
  }
  if (low > high) return;
  const { unit, edge, digits } = binsFor(low, (high - low) / 1440);
  const edges = [];
  for (let k = 0; !edges.length || edges.at(-1) <= high; k += 1) edges.push(edge(k) / 60000);
  const bins = Int32Array.from(Store.times, (time) => (time === NO_TIME ? -1 : binOf(time, edges)));
  const count = edges.length - 1;
  timeline = { edges, bins, count, first: edges[0], stop: edges.at(-1), unit, digits };
  for (const id of ["from", "to"]) byId(id).max = String(count - 1);
}
function chosenBins() {
  const { from, to } = state.filter;
  return [from === null ? 0 : Math.max(timeline.edges.indexOf(from), 0),
    to === null ? timeline.count - 1 : Math.max(timeline.edges.indexOf(to) - 1, 0)];
}
function chooseBins(first, last) {
  const [from, to] = [Math.min(first, last), Math.max(first, last)];
  const isAll = from === 0 && to === timeline.count - 1;
  return changeFilter({
    from: isAll ? null : timeline.edges[from], to: isAll ? null : timeline.edges[to + 1],
  });
}
function countBins(rows) {
  const counts = new Uint32Array(timeline.count);
  for (let row = 0; row < N_ROWS; row += 1) {
    if (timeline.bins[row] >= 0 && (!rows || rows[row])) counts[timeline.bins[row]] += 1;
  }
  return counts;
}
// The series of the timeline: A and B, or all rows and the selected rows.
function timeSeries() {
  const { reference, filter } = selection;
  if (isComparing()) {
    return [{ name: "A", rows: reference, color: "--first" },
      { name: "B", rows: filter, color: "--second" }];
  }
  const all = { name: "all", rows: null, color: "--edge" };
  return filter ? [all, { name: "selected", rows: filter, color: "--accent" }] : [all];
}
function showTime() {
  byId("time-part").hidden = !timeline;
  if (!timeline) return;
  const series = timeSeries().map((one) => ({ ...one, counts: countBins(one.rows) }));
  for (const one of series) one.most = Math.max(one.counts.reduce((a, b) => Math.max(a, b), 0), 1);
  const peak = ({ counts, most }) => (counts.includes(most)
    ? `${formatNumber(most)} in ${
      formatDay(timeline.edges[counts.indexOf(most)]).slice(0, timeline.digits)}` : "none");
  const peaks = series.map((one) => `${one.name}: maximum ${peak(one)}`).join("; ");
  byId("time-note").textContent = `${about.columns.time}, by ${timeline.unit}; ${
    isComparing() ? "each on its own scale; " : ""}${peaks}`;
  const [first, last] = chosenBins();
  drawTimeline(series, first, last);
  byId("from").value = String(first);
  byId("to").value = String(last);
  byId("from").setAttribute("aria-valuetext", formatDay(timeline.edges[first]));
  byId("to").setAttribute("aria-valuetext", formatDay(timeline.edges[last]));
}
function drawTimeline(series, first, last) {
  const { count } = timeline;
  const holder = byId("time");
  holder.textContent = "";
  const svg = addShape(holder, "svg", {
    viewBox: `0 0 ${count} 74`, preserveAspectRatio: "none",
    role: "img", "aria-label": byId("time-note").textContent,
  });
  if (first > 0 || last < count - 1) {
    addShape(svg, "rect", {
      x: first, width: last - first + 1, y: 0, height: 74, fill: cssColor("--wash"),
    });
  }
  series.forEach(({ counts, most, color }, side) => {
    const [x, width] = isComparing() ? [side ? 0.5 : 0.05, 0.42] : [0.06, 0.88];
    const stretch = isComparing() || !side ? 1 : 0.8;
    const fill = cssColor(color);
    counts.forEach((n, bin) => {
      if (!n) return;
      const height = Math.max(70 * n / most, 1) * stretch;
      addShape(svg, "rect", { x: bin + x, width, y: 74 - height, height, fill });
    });
  });
  let begin = -1;
  const binAt = (event) => {
    const { left, width } = svg.getBoundingClientRect();
    return Math.min(Math.max(Math.floor((event.clientX - left) / width * count), 0), count - 1);
  };
  svg.addEventListener("pointerdown", (event) => { begin = binAt(event); event.preventDefault(); });
  svg.addEventListener("pointerup", (event) => {
    if (begin >= 0) chooseBins(begin, binAt(event));
  });
}
for (const id of ["from", "to"]) {
  byId(id).addEventListener("input", () =>
    chooseBins(Number(byId("from").value), Number(byId("to").value)));
}
