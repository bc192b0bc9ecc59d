"use strict";
(() => {
  const LISTED = 100;
  const RANGE = 14; // pixels from a point within which one points at it
  const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const byId = (id) => document.getElementById(id);
  const data = JSON.parse(byId("comparison").textContent);
  const groups = Scatter.unpack(data.groups, Uint32Array);
  const rows = Scatter.unpack(data.rows, Uint32Array);
  const weights = Scatter.unpack(data.weights, Uint32Array);
  data.groupOf = groups;
  const sizes = new Uint32Array(data.names.length);
  for (const group of groups) sizes[group] += 1;
  data.largest = [...sizes.keys()].slice(1).sort((a, b) => sizes[b] - sizes[a] || a - b);
  const order = Uint32Array.from(rows.keys()).sort((a, b) => rows[a] - rows[b]);
  const baseRadius = Math.min(Math.max(5.5 - Math.log10(Math.max(data.n, 1)), 1.25), 4);

  const state = {
    tool: "lasso",
    view: { x: data.span[0] / 2, y: data.span[1] / 2, zoom: 1 },
    hidden: new Set(),
    look: Int32Array.from(groups), // the group of each document, -1 for the hidden
    selected: null,
    over: -1, // pointed at
    kept: -1, // clicked
    line: null, // what is being drawn: { map, points }
  };

  const maps = [...document.querySelectorAll("[data-map]")].map((holder, index) => {
    const [base, top] = holder.querySelectorAll("canvas");
    const encoder = data.encoders[index];
    return {
      holder, base, top, index, encoder,
      places: Scatter.unpack(encoder.places, Uint16Array),
      neighbors: Scatter.unpack(encoder.neighbors, data.n <= 65535 ? Uint16Array : Uint32Array),
      points: new Float32Array(2 * data.n), // pixels of the canvas
      scale: 1,
    };
  });

  // A child with a class and a text; texts never become markup.
  const add = (parent, tag, className, text) => {
    const child = document.createElement(tag);
    if (className) child.className = className;
    if (text !== undefined) child.textContent = text;
    parent.append(child);
    return child;
  };
  const number = (value) => value.toLocaleString("en");
  const isIn = (document) => state.selected !== null && state.selected[document] &&
    state.look[document] >= 0;
  const neighborsOf = (map, i) =>
    map.neighbors.subarray(i * data.depth, (i + 1) * data.depth).filter((j) => j < data.n);

  // ---- drawing: the points when something changed, what lies over them at every move

  const place = (map) => {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = map.holder;
    for (const canvas of [map.base, map.top]) {
      canvas.width = Math.max(Math.round(clientWidth * ratio), 1);
      canvas.height = Math.max(Math.round(clientHeight * ratio), 1);
    }
    map.ratio = ratio;
    const margin = 44 * ratio; // so that a line can be drawn around the outermost
    const fit = Math.min((map.base.width - margin) / data.span[0],
      (map.base.height - margin) / data.span[1]);
    map.scale = Math.max(fit, 1e-6) * state.view.zoom;
    const { points, places, scale } = map;
    const [left, top] = [map.base.width / 2 - state.view.x * scale,
      map.base.height / 2 + state.view.y * scale];
    for (let i = 0; i < points.length; i += 2) {
      points[i] = left + places[i] * scale;
      points[i + 1] = top - places[i + 1] * scale;
    }
    map.origin = [left, top];
  };

  let asked = null;
  const ask = (what) => { // once a frame, and never less than what was asked for
    if (asked === null) requestAnimationFrame(() => {
      const all = asked === "all";
      asked = null;
      const visible = state.selected && state.selected.map((kept, i) => kept && state.look[i] >= 0);
      const growth = Math.min(Math.sqrt(state.view.zoom), 2);
      for (const map of maps) {
        if (all) {
          place(map);
          Scatter.paint(map.base, map.points, state.look, visible, data.colors,
            baseRadius * growth * map.ratio);
        }
        Scatter.drawOver(map, data, state, neighborsOf);
      }
    });
    asked = asked === "all" ? "all" : what;
  };

  // ---- what is said beside the maps

  const short = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

  const describe = (parent, i) => {
    const head = add(parent, "div", "head");
    add(head, "span", "dot").style.background = data.colors[groups[i]];
    add(head, "strong", "", data.names[groups[i]]);
    const repeated = weights[i] > 1 ? ` · ${number(weights[i])} rows` : "";
    add(head, "span", "id", `${data.ids[i]}${repeated}`);
    add(parent, "p", "", data.texts[i]).dir = "auto";
  };

  const point = (i, map) => {
    const tip = byId("tip");
    if (i !== state.over) {
      state.over = i;
      ask("over");
      tip.replaceChildren();
      if (i >= 0) describe(tip, i);
    }
    tip.hidden = i < 0 || !map;
    if (tip.hidden) return;
    const box = map.holder.getBoundingClientRect();
    tip.style.width = `${Math.min(box.width, 360)}px`;
    const x = box.left + map.points[2 * i] / map.ratio;
    const y = box.top + map.points[2 * i + 1] / map.ratio;
    const [width, height] = [tip.offsetWidth, tip.offsetHeight];
    // within its own map's width, and out of the map by the nearer edge: the others stay in sight
    const low = y > box.top + box.height / 2;
    const [above, below] = [y - 18 - height, y + 18];
    const fits = low ? below + height < window.innerHeight : above < 0;
    const top = fits ? below : above;
    tip.style.left = `${Math.min(Math.max(x - width / 2, box.left), box.right - width)}px`;
    tip.style.top = `${Math.max(Math.min(top, window.innerHeight - height - 4), 4)}px`;
  };

  const choice = (parent, i, text) => {
    const button = add(parent, "button", "document");
    button.type = "button";
    button.dataset.document = i;
    add(button, "span", "dot").style.background = data.colors[groups[i]];
    add(button, "bdi", "", text).dir = "auto";
    return button;
  };

  const keep = (i) => {
    state.kept = i;
    const holder = byId("document");
    holder.hidden = i < 0;
    holder.replaceChildren();
    ask("over");
    if (i < 0) return;
    describe(holder, i);
    const lists = maps.map((map) => [...neighborsOf(map, i)]);
    const times = new Map();
    for (const j of lists.flat()) times.set(j, (times.get(j) || 0) + 1);
    const columns = add(holder, "div", "neighbors");
    lists.forEach((list, index) => {
      const column = add(columns, "div");
      add(column, "h4", "", `Nearest by ${data.encoders[index].name}`);
      if (!list.length) add(column, "p", "id", "has none: nothing in common with others");
      const items = add(column, "ol");
      for (const j of list) {
        const item = add(items, "li");
        if (maps.length > 1 && times.get(j) === maps.length) item.className = "shared";
        choice(item, j, short(data.texts[j], 90));
        if (maps.length > 1) {
          const note = times.get(j) === maps.length ? "in every list"
            : times.get(j) === 1 ? "only here" : `in ${times.get(j)} of ${maps.length}`;
          add(item, "span", "id", note);
        }
      }
    });
  };

  const chosen = () => Array.from(order).filter(isIn);

  const tell = () => {
    const list = state.selected === null ? null : chosen();
    byId("count").textContent = list === null ? `${number(data.n)} documents`
      : `${number(list.length)} of ${number(data.n)} documents selected`;
    byId("clear").hidden = list === null;
    byId("selection").hidden = list === null;
    const items = byId("listed");
    items.replaceChildren();
    if (list === null) return;
    const counts = new Map();
    for (const i of list) counts.set(groups[i], (counts.get(groups[i]) || 0) + 1);
    const parts = [...counts].sort((a, b) => b[1] - a[1] || a[0] - b[0]).slice(0, 8)
      .map(([group, count]) => `${data.names[group]} ${number(count)}`);
    byId("shares").textContent = parts.join(" · ") +
      (list.length > LISTED ? ` — the first ${LISTED} are listed; the file holds all.` : "");
    for (const i of list.slice(0, LISTED)) {
      const item = add(items, "li");
      choice(item, i, data.texts[i]);
      add(item, "span", "id",
        `${data.names[groups[i]]} · ${data.ids[i]} · row ${number(rows[i] + 1)}`);
    }
  };

  const select = (found, more) => {
    if (found && more && state.selected) found = found.map((yes, i) => yes | state.selected[i]);
    state.selected = found;
    tell();
    ask("all");
  };

  const clear = () => {
    byId("search").value = "";
    point(-1);
    keep(-1);
    select(null);
  };

  const cell = (value) => {
    const text = String(value);
    // a spreadsheet runs what begins like a formula
    return `"${(/^[=+\-@\t\r]/.test(text) ? `'${text}` : text).replaceAll('"', '""')}"`;
  };

  const download = () => {
    const lines = chosen().map((i) =>
      [data.ids[i], rows[i] + 1, data.names[groups[i]], data.texts[i]].map(cell).join(","));
    const file = new Blob(["\ufeff", ["id,row,group,text", ...lines, ""].join("\r\n")],
      { type: "text/csv;charset=utf-8" });
    const link = document.createElement("a");
    link.href = URL.createObjectURL(file);
    link.download = "selection.csv";
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // ---- what people do

  const hide = (group, alone) => {
    const every = [...document.querySelectorAll("[data-group]")];
    const others = every.map((button) => Number(button.dataset.group)).filter((g) => g !== group);
    if (alone) {
      const already = others.every((g) => state.hidden.has(g));
      state.hidden = new Set(already ? [] : others);
    } else if (!state.hidden.delete(group)) state.hidden.add(group);
    for (const button of every) {
      button.setAttribute("aria-pressed", !state.hidden.has(Number(button.dataset.group)));
    }
    state.look = Int32Array.from(groups, (g) => (state.hidden.has(g) ? -1 : g));
    tell();
    ask("all");
  };

  const zoom = (by) => {
    state.view.zoom = Math.min(Math.max(state.view.zoom * by, 1), 60);
    if (state.view.zoom === 1) [state.view.x, state.view.y] = data.span.map((span) => span / 2);
    point(-1);
    ask("all");
  };

  const follow = (map) => {
    let start = null; // where the button went down
    const here = (event) => {
      const box = map.holder.getBoundingClientRect();
      return [(event.clientX - box.left) * map.ratio, (event.clientY - box.top) * map.ratio];
    };
    map.holder.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = { at: here(event), view: { ...state.view }, dragged: false };
      if (event.pointerType !== "touch") map.holder.setPointerCapture(event.pointerId);
    });
    map.holder.addEventListener("pointermove", (event) => {
      const [x, y] = here(event);
      if (start && event.pointerType !== "touch") {
        start.dragged ||= Math.hypot(x - start.at[0], y - start.at[1]) > 4 * map.ratio;
        if (!start.dragged) return;
        point(-1);
        const [a, b] = start.at;
        if (state.tool === "move") {
          state.view.x = start.view.x - (x - a) / map.scale;
          state.view.y = start.view.y + (y - b) / map.scale;
          ask("all");
          return;
        }
        if (state.tool === "box") state.line = { map, points: [a, b, x, b, x, y, a, y] };
        else {
          state.line ||= { map, points: [a, b] };
          state.line.points.push(x, y);
        }
        ask("over");
        return;
      }
      point(Scatter.nearest(map.points, state.look, x, y, RANGE * map.ratio), map);
    });
    map.holder.addEventListener("pointerup", (event) => {
      if (!start) return;
      const { dragged } = start;
      start = null;
      if (!dragged) {
        const [x, y] = here(event);
        keep(Scatter.nearest(map.points, state.look, x, y, RANGE * map.ratio));
      } else if (state.line) {
        const found = Scatter.inside(map.points, state.look, state.line.points);
        state.line = null;
        byId("search").value = "";
        select(found.includes(1) || event.shiftKey ? found : null, event.shiftKey);
      }
    });
    map.holder.addEventListener("pointercancel", () => { start = state.line = null; ask("over"); });
    map.holder.addEventListener("pointerleave", () => { if (!start) point(-1); });
    map.holder.addEventListener("blur", () => point(-1));
    map.holder.addEventListener("dblclick", () => { zoom(0); clear(); });
    map.holder.addEventListener("keydown", (event) => {
      const way = WAYS[event.key];
      if (event.key === "Enter" && state.over >= 0) keep(state.over);
      if (!way) return;
      event.preventDefault();
      const middle = Scatter.nearest(map.points, state.look, map.base.width / 2,
        map.base.height / 2, Infinity);
      const from = state.over >= 0 ? state.over : state.kept;
      const to = from < 0 ? middle : Scatter.next(map.points, state.look, from, way);
      if (to >= 0) point(to, map);
    });
  };

  const choose = (tool) => {
    state.tool = tool;
    for (const button of document.querySelectorAll("[data-tool]")) {
      button.setAttribute("aria-pressed", button.dataset.tool === tool);
    }
    document.querySelector(".panels").dataset.tool = tool;
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.tool) choose(button.dataset.tool);
    if (button.dataset.zoom) zoom(Number(button.dataset.zoom));
    if (button.dataset.group) hide(Number(button.dataset.group), false);
    if (button.dataset.document) {
      keep(Number(button.dataset.document));
      document.querySelector(".panels").scrollIntoView({ block: "nearest" });
    }
  });
  document.addEventListener("dblclick", (event) => {
    const button = event.target.closest("[data-group]");
    if (button) hide(Number(button.dataset.group), true);
  });
  for (const [name, found] of [["pointerover", true], ["pointerout", false]]) {
    document.addEventListener(name, (event) => {
      const button = event.target.closest("button[data-document]");
      if (button) point(found ? Number(button.dataset.document) : -1);
    });
  }
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  byId("clear").addEventListener("click", clear);
  byId("download").addEventListener("click", download);
  byId("search").addEventListener("input", (event) => {
    const sought = event.target.value.trim().toLowerCase();
    const holds = (text, i) => state.look[i] >= 0 && text.toLowerCase().includes(sought);
    select(sought ? Uint8Array.from(data.texts, (text, i) => holds(text, i) ? 1 : 0) : null);
  });

  maps.forEach(follow);
  choose("lasso");
  tell();
  const shape = Math.min(Math.max(data.span[1] / data.span[0], 0.72), 1.05);
  document.querySelector(".panels").style.setProperty("--shape", String(1 / shape));
  const watcher = new ResizeObserver(() => ask("all"));
  for (const map of maps) watcher.observe(map.holder);
})();
