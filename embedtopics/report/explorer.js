"use strict";
// Export of the selection and the map, gestures, keys, a notebook around the page, and its start.

// ---- export

function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
function csvCell(value) {
  if (typeof value === "number") return value;
  const text = String(value);
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text; // no formula in a spreadsheet
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}
async function saveCsv() {
  const label = byId("label").value.trim();
  const head = ["row", ...(about.hasIds ? ["id"] : []), about.unit, `${about.unit}_label`];
  if (label) head.push("label");
  const lines = [head.join(",")];
  for (const row of listRows(selection.filter)) {
    const topic = Store.topicOf[row];
    const cells = [Store.rowNumber(row)];
    if (about.hasIds) cells.push(await Store.id(row));
    cells.push(topic - 1, topic ? topicName(topic) : "");
    if (label) cells.push(label);
    lines.push(cells.map(csvCell).join(","));
  }
  const parts = ["\ufeff", lines.join("\r\n"), "\r\n"];
  saveFile(new Blob(parts, { type: "text/csv;charset=utf-8" }), "selection.csv");
}
async function copyText(text, description) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = add(document.body, "textarea", "unseen", text);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  byId("state").textContent = `${description} copied`;
  announce(`${description} copied`);
}
async function copyIds() {
  const ids = [];
  for (const row of listRows(selection.filter)) ids.push(await Store.id(row));
  copyText(ids.join("\n"), plural(ids.length, about.hasIds ? "id" : "row number"));
}

// The corner of each map relative to the first one, in pixels of the page.
function mapCorners() {
  const first = holders[0].getBoundingClientRect();
  return holders.map((holder) => {
    const { left, top } = holder.getBoundingClientRect();
    return [left - first.left, top - first.top];
  });
}
// Width and height of the rectangle around all maps.
function mapsSize() {
  const corners = mapCorners();
  const sizes = holders.map((holder) => [holder.clientWidth, holder.clientHeight]);
  return [0, 1].map((side) => Math.max(...corners.map((corner, i) => corner[side] + sizes[i][side])));
}
function savePng() {
  const { ratio } = atlases[0];
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = mapsSize().map((length) => length * ratio);
  const context = canvas.getContext("2d");
  context.fillStyle = theme.paper;
  context.fillRect(0, 0, canvas.width, canvas.height);
  mapCorners().forEach(([left, top], i) => {
    context.drawImage(atlases[i].picture(theme.paper), left * ratio, top * ratio);
  });
  canvas.toBlob((blob) => saveFile(blob, "map.png"));
}
function saveSvg() {
  const [width, height] = mapsSize();
  const image = document.createElementNS(SVG, "svg");
  const attributes = {
    xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`,
    "font-family": "system-ui, Arial, sans-serif",
  };
  for (const [name, value] of Object.entries(attributes)) image.setAttribute(name, value);
  addShape(image, "rect", { width, height, fill: cssColor("--paper-hex") });
  mapCorners().forEach((corner, i) => {
    const group = addShape(image, "g", { transform: `translate(${corner.join(" ")})` });
    addPointsTo(group, atlases[i]);
    addNamesTo(group, namesOnMaps[i]);
  });
  const text = new XMLSerializer().serializeToString(image);
  saveFile(new Blob([text], { type: "image/svg+xml" }), "map.svg");
}
function addPointsTo(image, atlas) {
  const { clientWidth: width, clientHeight: height } = atlas.holder;
  const radius = (atlas.radius() / atlas.ratio).toFixed(2);
  for (const isSelected of [false, true]) {
    const layer = addShape(image, "g", { "fill-opacity": isSelected ? 0.85 : 0.3 });
    for (const row of atlas.order) {
      if (Boolean(!selection.filter || selection.filter[row]) !== isSelected) continue;
      const [cx, cy] = atlas.at(row);
      if (cx < 0 || cy < 0 || cx > width || cy > height) continue;
      const fill = isSelected ? topicColor(Store.topicOf[row]) : cssColor("--edge");
      addShape(layer, "circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: radius, fill });
    }
  }
}
function addNamesTo(image, names) {
  for (const { lines, x, y, height, color } of names) {
    lines.forEach((text, k) => {
      const middle = y + (k - (lines.length - 1) / 2) * height;
      addShape(image, "text", {
        x: x.toFixed(1), y: middle.toFixed(1), fill: color, stroke: cssColor("--paper-hex"),
        "stroke-width": 3, "paint-order": "stroke", "stroke-linejoin": "round",
        "text-anchor": "middle", "dominant-baseline": "central", "font-size": height / 1.18,
        "font-weight": 650,
      }).textContent = text;
    });
  }
}

// ---- the tooltip

const tip = byId("tip");
async function hover(row, event) {
  if (row === state.hovered) return;
  state.hovered = row;
  drawOverlay();
  tip.hidden = row < 0;
  if (row < 0) return;
  tip.textContent = "";
  const head = add(tip, "div", "topic");
  add(head, "span", "dot").style.background = topicColor(Store.topicOf[row]);
  add(head, "bdi", "", topicName(Store.topicOf[row]));
  const theme = themeOf[Store.topicOf[row]];
  if (theme) add(tip, "p", "note", `Theme: ${themeName(theme)}`);
  const body = add(tip, "p");
  body.dir = "auto";
  moveTip(event);
  const text = await Store.text(row);
  if (state.hovered !== row) return;
  body.textContent = "";
  addHighlighted(body, shorten(text, 240));
  moveTip(event);
}
function moveTip({ clientX, clientY }) {
  const { width, height } = tip.getBoundingClientRect();
  const fitsBelow = clientY + 18 + height <= innerHeight;
  const top = fitsBelow ? clientY + 18 : Math.max(clientY - height - 12, 4);
  tip.style.left = `${Math.max(Math.min(clientX + 14, innerWidth - width - 8), 8)}px`;
  tip.style.top = `${top}px`;
}

// ---- gestures on a map: drag to move, draw a lasso, pinch or scroll to zoom, click to open

function zoomBy(factor) {
  const map = holders[state.panel];
  atlases[state.panel].zoom(factor, map.clientWidth / 2, map.clientHeight / 2);
  redraw();
  writeHash();
}
function showWholeMap() {
  atlases[0].reset();
  redraw();
  writeHash();
}
function listenToMap(map, panel) {
  const atlas = atlases[panel];
  const gesture = { pointers: new Map(), pinch: 0 };
  const positionOf = ({ clientX, clientY }) => {
    const { left, top } = map.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  map.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    state.panel = panel;
    map.focus({ preventScroll: true });
    map.setPointerCapture(event.pointerId);
    pressPointer(atlas, gesture, event, positionOf(event));
  });
  map.addEventListener("pointermove", (event) => {
    movePointer(atlas, gesture, event, positionOf(event));
  });
  for (const kind of ["pointerup", "pointercancel"]) {
    map.addEventListener(kind, (event) => releasePointer(atlas, gesture, event, panel));
  }
  map.addEventListener("pointerleave", (event) => hover(-1, event));
  map.addEventListener("wheel", (event) => {
    event.preventDefault();
    const speed = event.deltaMode ? 0.05 : 0.0015; // lines or pixels
    atlas.zoom(Math.exp(-event.deltaY * speed), ...positionOf(event));
    redraw(true);
    writeHash();
  }, { passive: false });
  map.addEventListener("dblclick", (event) => {
    atlas.zoom(2, ...positionOf(event));
    redraw();
    writeHash();
  });
  map.addEventListener("keydown", (event) => pressKeyOnMap(map, atlas, event));
  map.addEventListener("focus", () => { state.panel = panel; });
}
function pressPointer(atlas, gesture, event, position) {
  const pointer = { position, start: position, hasMoved: false };
  gesture.pointers.set(event.pointerId, pointer);
  gesture.pinch = 0;
  const isLasso = gesture.pointers.size === 1 && (event.shiftKey || state.tool === "lasso");
  state.lasso = isLasso ? atlas.under(...position) : null;
}
function movePointer(atlas, gesture, event, position) {
  const pointer = gesture.pointers.get(event.pointerId);
  if (!pointer) {
    hover(atlas.nearest(...position), event);
    return;
  }
  const [right, down] = [position[0] - pointer.position[0], position[1] - pointer.position[1]];
  const [startX, startY] = pointer.start;
  pointer.hasMoved ||= Math.hypot(position[0] - startX, position[1] - startY) > 4;
  pointer.position = position;
  hover(-1, event);
  if (state.lasso) {
    state.lasso.push(...atlas.under(...position));
    drawOverlay();
  } else if (gesture.pointers.size === 2) {
    pinch(atlas, gesture);
  } else if (pointer.hasMoved) {
    atlas.move(right, down);
    redraw(true);
  }
}
function pinch(atlas, gesture) {
  const [a, b] = [...gesture.pointers.values()].map(({ position }) => position);
  const distance = Math.hypot(a[0] - b[0], a[1] - b[1]);
  if (gesture.pinch) {
    atlas.zoom(distance / gesture.pinch, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
  }
  gesture.pinch = distance;
  redraw(true);
}
function releasePointer(atlas, gesture, event, panel) {
  const pointer = gesture.pointers.get(event.pointerId);
  gesture.pointers.delete(event.pointerId);
  if (!pointer) return;
  const { lasso } = state;
  state.lasso = null;
  if (lasso && pointer.hasMoved && lasso.length >= 6) {
    changeFilter({ lasso: lasso.map(Math.round), panel });
  } else if (!pointer.hasMoved && event.type === "pointerup") {
    openDocument(atlas.nearest(...pointer.position));
    drawOverlay();
  } else {
    redraw();
    writeHash();
  }
}

// ---- keys

function pressKeyOnMap(map, atlas, event) {
  const direction = DIRECTIONS[event.key];
  if (direction && event.shiftKey) {
    atlas.move(-60 * direction[0], -60 * direction[1]);
    redraw();
  } else if (direction) openNext(map, atlas, direction);
  else if (event.key === "Enter" && state.opened >= 0) byId("document").focus();
  else if (event.key === "+" || event.key === "=") zoomBy(1.5);
  else if (event.key === "-") zoomBy(1 / 1.5);
  else if (event.key === "0") showWholeMap();
  else return;
  event.preventDefault();
}
// Open the next document in a direction, or the document nearest to the centre, and show it.
function openNext(map, atlas, direction) {
  const candidates = selection.filter ? Int8Array.from(selection.filter, (isIn) => isIn - 1)
    : atlas.visible;
  const row = state.opened < 0 ? Scatter.nearest(atlas.places, candidates, view.x, view.y, 1e9)
    : atlas.next(candidates, state.opened, direction);
  if (row < 0) return;
  openDocument(row, false);
  const [left, top] = atlas.at(row);
  if (left < 0 || top < 0 || left > map.clientWidth || top > map.clientHeight) {
    atlas.move(map.clientWidth / 2 - left, map.clientHeight / 2 - top);
    redraw();
  }
}
function pressKeyOnPage(event) {
  if (event.key === "Escape") {
    if (state.opened >= 0) closeDocument();
    else clearSelection();
  } else if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    byId("search").focus();
  }
}

// ---- a notebook around the page, to which selections go, and from which they come

let notebook = null;
let sendTimer = 0;
function sendSelection() {
  clearTimeout(sendTimer);
  if (!notebook) return;
  sendTimer = setTimeout(() => {
    const rows = selection.filter ? listRows(selection.filter).map(Store.rowNumber) : [];
    notebook.postMessage({ embedtopics: "selection", rows: Uint32Array.from(rows) }, "*");
  }, 100);
}
function joinNotebook() {
  if (parent === window) return;
  window.addEventListener("message", ({ source, data }) => {
    if (source !== parent || data?.embedtopics !== "select") return;
    const wanted = new Set(data.rows);
    const rows = Uint8Array.from({ length: N_ROWS }, (_, row) => wanted.has(Store.rowNumber(row)));
    state.reference = null;
    state.filter = { ...emptyFilter(), rows: wanted.size ? rows : null };
    byId("search").value = "";
    update();
  });
  notebook = parent;
  notebook.postMessage({ embedtopics: "ready" }, "*");
}

// ---- the start of the page

function chooseTool(button) {
  state.tool = byId("maps").dataset.tool = button.dataset.tool;
  for (const other of document.querySelectorAll("button[data-tool]")) {
    other.setAttribute("aria-pressed", String(other === button));
  }
}
function toggleTheme() {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  readTheme();
  update({ quiet: true });
}
function listenToPage() {
  const onClick = {
    nearer: () => zoomBy(1.5), further: () => zoomBy(1 / 1.5), whole: showWholeMap,
    csv: saveCsv, "copy-ids": copyIds, "copy-filter": () => copyText(filterExpression(), "filter"),
    png: savePng, svg: saveSvg, clear: clearSelection, hold: toggleComparison, theme: toggleTheme,
    "about-study": () => byId("study").scrollIntoView(),
  };
  for (const [id, act] of Object.entries(onClick)) byId(id).addEventListener("click", act);
  for (const button of document.querySelectorAll("button[data-tool]")) {
    button.addEventListener("click", () => chooseTool(button));
  }
  byId("search").addEventListener("input", (event) => changeFilter({ words: event.target.value }));
  byId("search").addEventListener("focus", () => Store.loadIndex(), { once: true });
  document.addEventListener("keydown", pressKeyOnPage);
  window.addEventListener("hashchange", () => {
    if (location.hash === writtenHash) return;
    readHash();
    update();
  });
  window.addEventListener("beforeprint", () =>
    atlases.forEach((atlas) => atlas.draw(theme.paper, false)));
}
async function start() {
  const { dataset } = document.documentElement;
  dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  await Store.load();
  byId("busy").remove();
  atlases = holders.map((holder, panel) => Atlas.make(holder, {
    n: N_ROWS, places: Store.places[panel], span: about.span, view,
  }));
  const resize = () => atlases.forEach((atlas) => atlas.resize());
  resize();
  holders.forEach(listenToMap);
  byId("topics-title").textContent = about.topicsTitle;
  const [map] = holders;
  map.dataset.painter = atlases[0].kind;
  readTheme();
  readTimes();
  readHash();
  await update({ quiet: true });
  joinNotebook();
  // A new size clears the maps: they are drawn before the page is shown.
  new ResizeObserver(() => { resize(); drawMaps(); fillTable(); }).observe(map);
  requestAnimationFrame(() => requestAnimationFrame(() => {
    performance.mark("drawn");
    map.dataset.ready = "1";
  }));
}
listenToPage();
start();
