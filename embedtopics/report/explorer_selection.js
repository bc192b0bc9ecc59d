"use strict";
// Filters, the rows that they select, their description, and their form in the page's address.

const isEmpty = (filter) => !filter.words.trim() && !filter.topics.size && !filter.groups.size
  && !filter.lasso && !filter.rows && filter.from === null && filter.to === null;
let stopWords = []; // of the latest search

// Return the selected rows as 0 and 1, or null for all rows.
function selectRows(filter) {
  if (isEmpty(filter)) return null;
  const rows = filter.lasso ? atlases[filter.panel].inside(filter.lasso)
    : new Uint8Array(N_ROWS).fill(1);
  const keep = (accepts) => {
    for (let row = 0; row < N_ROWS; row += 1) if (rows[row] && !accepts(row)) rows[row] = 0;
  };
  const { topicOf, groups, times, documentOf } = Store;
  stopWords = [];
  if (filter.words.trim() && Store.index) {
    const answer = Store.search(filter.words);
    stopWords = answer.skipped;
    keep((row) => answer.held[documentOf[row]]);
  }
  if (filter.rows) keep((row) => filter.rows[row]);
  if (filter.topics.size) keep((row) => filter.topics.has(topicOf[row]));
  if (filter.groups.size) keep((row) => filter.groups.has(groups[row]));
  if (filter.from !== null) keep((row) => times[row] >= filter.from);
  if (filter.to !== null) keep((row) => times[row] < filter.to && times[row] !== NO_TIME);
  return rows;
}
function countRows(rows) {
  if (!rows) return N_ROWS;
  let sum = 0;
  for (let row = 0; row < N_ROWS; row += 1) sum += rows[row];
  return sum;
}
function listRows(rows, limit = N_ROWS) {
  const list = [];
  for (let row = 0; row < N_ROWS && list.length < limit; row += 1) {
    if (!rows || rows[row]) list.push(row);
  }
  return list;
}

// Apply the filters and update the page.
let latestUpdate = 0;
let wordsTimer = 0;
async function update({ quiet = false } = {}) {
  const number = latestUpdate += 1;
  if (state.filter.words.trim() || state.reference?.words.trim()) await Store.loadIndex();
  if (number !== latestUpdate) return;
  selection.reference = state.reference
    && (selectRows(state.reference) ?? new Uint8Array(N_ROWS).fill(1));
  selection.filter = selectRows(state.filter);
  recolor();
  showSummary();
  showTable();
  showThemes();
  showTopics();
  showGroups();
  showTime();
  writeHash();
  sendSelection();
  if (!quiet) announce(byId("state").textContent);
  clearTimeout(wordsTimer);
  wordsTimer = setTimeout(showWords, 30);
}
function changeFilter(changes) {
  Object.assign(state.filter, changes);
  return update();
}
function searchFor(words) {
  byId("search").value = words;
  return changeFilter({ words });
}
function toggled(set, value) {
  const changed = new Set(set);
  if (!changed.delete(value)) changed.add(value);
  return changed;
}
function clearSelection() {
  state.reference = null;
  state.filter = emptyFilter();
  state.side = "filter";
  byId("search").value = "";
  openDocument(-1);
  update();
}
function toggleComparison() {
  if (isComparing()) {
    state.reference = null;
  } else {
    state.reference = state.filter;
    state.filter = emptyFilter();
    byId("search").value = "";
  }
  state.side = "filter";
  update();
}

// ---- description of the selection

// Return the conditions of a filter, each as a text and a function that removes it.
function conditionsOf(filter) {
  const conditions = [];
  if (filter.words.trim()) {
    conditions.push([`contains ${filter.words.trim()}`, () => searchFor("")]);
  }
  for (const topic of filter.topics) {
    const remove = () => changeFilter({ topics: toggled(filter.topics, topic) });
    conditions.push([topicName(topic), remove]);
  }
  for (const group of filter.groups) {
    const remove = () => changeFilter({ groups: toggled(filter.groups, group) });
    conditions.push([groupName(group), remove]);
  }
  if (filter.from !== null || filter.to !== null) {
    const [first, last] = [filter.from ?? timeline.first, (filter.to ?? timeline.stop) - 1];
    const remove = () => changeFilter({ from: null, to: null });
    conditions.push([`${formatDay(first)} to ${formatDay(last)}`, remove]);
  }
  if (filter.lasso) {
    const { name } = about.panels[filter.panel];
    const remove = () => changeFilter({ lasso: null });
    conditions.push([`inside the lasso${name ? ` on ${name}` : ""}`, remove]);
  }
  if (filter.rows) conditions.push(["selected in the notebook", () => changeFilter({ rows: null })]);
  return conditions;
}
function showSummary() {
  const count = countRows(selection.filter);
  showTitle(count);
  showConditions();
  const isWaiting = state.filter.words.trim() && !Store.index;
  const number = selection.filter ? `${formatNumber(count)} of ${plural(N_ROWS, "document")}` : "";
  const ignored = stopWords.length ? ` (ignored stop words: ${stopWords.join(", ")})` : "";
  byId("state").textContent = isWaiting ? "this page has no search index" : number + ignored;
  const hasSelection = Boolean(selection.filter || isComparing());
  byId("take").hidden = !selection.filter;
  byId("clear").hidden = !hasSelection;
  byId("hold").hidden = !hasSelection;
  byId("hold").textContent = isComparing() ? "End the comparison" : "Compare with another selection";
}
function showTitle(count) {
  const title = byId("number");
  const all = plural(N_ROWS, "document");
  title.textContent = "";
  if (isComparing()) {
    const { reference, filter } = selection;
    add(title, "span", "first", `A: ${formatNumber(countRows(reference))}`);
    title.append(" and ");
    add(title, "span", "second", `B: ${formatNumber(count)}`);
    const nBoth = reference.reduce((sum, isIn, row) =>
      sum + (isIn && (!filter || filter[row]) ? 1 : 0), 0);
    add(title, "span", "note", nBoth ? ` \u2013 ${formatNumber(nBoth)} in both` : "");
  } else if (selection.filter) {
    title.textContent = `${formatNumber(count)} of ${all}, ${formatShare(count / Math.max(N_ROWS, 1))}`;
  } else title.textContent = `${all}, ${plural(about.topics.length, about.unit)}`;
}
function showConditions() {
  const list = byId("conditions");
  list.textContent = "";
  if (isComparing()) {
    const texts = conditionsOf(state.reference).map(([text]) => text);
    add(list, "li", "note", `A: ${texts.join(", ") || "all"}`);
  }
  for (const [text, remove] of conditionsOf(state.filter)) {
    const button = addButton(add(list, "li"), "", `${text} \u00d7`, remove);
    button.setAttribute("aria-label", `Remove: ${text}`);
  }
  if (selection.filter || isComparing()) return;
  const choices = [`${about.unit}s`, ...(Store.groups ? ["groups"] : []),
    ...(Store.times ? ["a time range"] : [])];
  const absent = about.withoutText
    ? ` Not on the map: ${plural(about.withoutText, "row")} without text.` : "";
  add(list, "li", "note",
    `Search, draw a lasso, or choose ${choices.join(" or ")} to select documents.${absent}`);
}

// ---- the page's address

function filterToParameters(filter) {
  const parameters = new URLSearchParams();
  const base36 = (value) => Math.round(value).toString(36);
  if (filter.words.trim()) parameters.set("q", filter.words.trim());
  if (filter.topics.size) {
    parameters.set("topics", [...filter.topics].map((topic) => topic - 1).join("."));
  }
  if (filter.groups.size) parameters.set("groups", [...filter.groups].join("."));
  if (filter.from !== null) parameters.set("from", base36(filter.from));
  if (filter.to !== null) parameters.set("to", base36(filter.to));
  if (filter.lasso) parameters.set("line", filter.lasso.map(base36).join("."));
  if (filter.lasso && filter.panel) parameters.set("panel", filter.panel);
  return parameters;
}
function filterFromParameters(parameters) {
  const filter = emptyFilter();
  const list = (name) => (parameters.get(name) ?? "").split(".").filter(Boolean);
  const integers = (name, low, high) => list(name).map(Number)
    .filter((value) => Number.isInteger(value) && value >= low && value <= high);
  const time = (name) => {
    const value = parseInt(parameters.get(name) ?? "", 36);
    return timeline && timeline.edges.includes(value) ? value : null;
  };
  filter.words = parameters.get("q") ?? "";
  filter.topics = new Set(integers("topics", -1, about.topics.length - 1).map((t) => t + 1));
  if (Store.groups) filter.groups = new Set(integers("groups", 0, about.groups.length));
  [filter.from, filter.to] = [time("from"), time("to")];
  filter.panel = integers("panel", 0, about.panels.length - 1)[0] ?? 0;
  const line = list("line").map((value) => parseInt(value, 36)).filter(Number.isFinite);
  if (line.length >= 6) filter.lasso = line.slice(0, 2 * Math.floor(line.length / 2));
  return filter;
}
let hashTimer = 0;
let writtenHash = "";
function writeHash() {
  clearTimeout(hashTimer);
  hashTimer = setTimeout(() => {
    const parameters = filterToParameters(state.filter);
    const { x, y, zoom } = view;
    if (zoom !== 1) {
      const values = [x, y, 1000 * zoom].map((value) => Math.round(value).toString(36));
      parameters.set("view", values.join("."));
    }
    if (isComparing()) parameters.set("a", filterToParameters(state.reference).toString());
    const present = new URLSearchParams(location.hash.slice(1));
    for (const painter of ["cpu", "gl"]) if (present.has(painter)) parameters.set(painter, "");
    writtenHash = parameters.size ? `#${parameters}` : "";
    try {
      history.replaceState(null, "", writtenHash || location.href.split("#")[0]);
    } catch { /* a page inside a notebook has no address */ }
  }, 250);
}
function readHash() {
  const parameters = new URLSearchParams(location.hash.slice(1));
  state.filter = filterFromParameters(parameters);
  state.reference = parameters.has("a")
    ? filterFromParameters(new URLSearchParams(parameters.get("a"))) : null;
  const values = (parameters.get("view") ?? "").split(".").map((value) => parseInt(value, 36));
  const [x, y, zoom] = values;
  if ([x, y, zoom].every(Number.isFinite) && zoom > 0) {
    Object.assign(view, { x, y, zoom: zoom / 1000 });
  }
  byId("search").value = state.filter.words;
}

// ---- the selection as a filter of the package

const quoteValue = (text) => `'${text.replace(/\\/g, "\\\\").replace(/'/g, "''")
  .replace(/\n/g, "\\n").replace(/\r/g, "\\r").replace(/\t/g, "\\t")}'`;
function quoteColumn(name) {
  if (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name)) return name;
  return `"${name.replace(/\\/g, "\\\\").replace(/"/g, '""')}"`;
}
function groupCondition(groups) {
  const column = quoteColumn(about.columns.group);
  const names = [...groups].filter(Boolean).map((group) => quoteValue(about.groups[group - 1]));
  const conditions = names.length ? [`${column} in (${names.join(", ")})`] : [];
  if (groups.has(0)) conditions.push(`${column} is null`);
  return conditions.length > 1 ? `(${conditions.join(" or ")})` : conditions[0];
}
// Return a filter expression; words, lassos, rows and named groups become a list of rows.
function filterExpression() {
  const { words, topics, groups, lasso, rows, from, to } = state.filter;
  if (words.trim() || lasso || rows || (topics.size && about.unit !== "topic")) {
    return `corpus.take([${listRows(selection.filter).map(Store.rowNumber).join(", ")}])`;
  }
  const conditions = [];
  if (topics.size) {
    conditions.push(`topic in (${[...topics].map((topic) => topic - 1).join(", ")})`);
  }
  if (groups.size) conditions.push(groupCondition(groups));
  const { time } = about.columns;
  if (from !== null) conditions.push(`${quoteColumn(time)} >= '${formatDay(from)}'`);
  if (to !== null) conditions.push(`${quoteColumn(time)} < '${formatDay(to)}'`);
  return conditions.join(" and ");
}
