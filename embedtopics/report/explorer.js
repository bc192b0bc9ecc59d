"use strict";
// What the reader asks: conditions that select rows, and what the page says about them.
(() => {
  const { about } = Store;
  const { n } = Store;
  const NO_TIME = -(2 ** 31);
  const ROW = 46; // pixels of a line of the table
  const MOST_ROWS = 300000; // in the table: beyond, a browser cannot scroll so far
  const LISTED = 10;
  const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  const SVG = "http://www.w3.org/2000/svg";
  const byId = (id) => document.getElementById(id);
  const root = document.documentElement;

  const nothing = () => ({ words: "", topics: new Set(), groups: new Set(), lasso: null,
    panel: 0, from: null, to: null });
  const state = {
    now: nothing(), // conditions
    held: null, // conditions of the first of two selections
    tool: "move", over: -1, open: -1, line: null, shownSide: "now", unfolded: new Set(),
    panel: 0, // the map under the hand
  };
  const found = { now: null, held: null }; // Uint8Array of rows, or null for all of them
  const holders = [...document.querySelectorAll(".map")];
  const view = { x: about.span[0] / 2, y: about.span[1] / 2, zoom: 1, scale: 1, fit: 1 };
  let atlases = [];

  // ---- small pieces

  // A child with a class and a text; texts never become markup.
  const add = (parent, tag, className, text) => {
    const child = document.createElement(tag);
    if (className) child.className = className;
    if (text !== undefined) child.textContent = text;
    parent.append(child);
    return child;
  };
  const draw = (parent, tag, attributes) => {
    const child = document.createElementNS(SVG, tag);
    for (const [name, value] of Object.entries(attributes)) child.setAttribute(name, value);
    parent.append(child);
    return child;
  };
  const number = (value) => value.toLocaleString("en");
  const percent = (share) => `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)} %`;
  const plural = (count, one) => `${number(count)} ${one}${count === 1 ? "" : "s"}`;
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const say = (text) => { byId("live").textContent = text; };
  const day = (minutes) => new Date(minutes * 60000).toISOString().slice(0, 10);
  const topicName = (topic) => (topic ? about.topics[topic - 1].label : `No ${about.unit}`);
  const groupName = (group) => (group ? about.groups[group - 1] : "(none)");

  // ---- colours: those of the page, lighter where it is dark

  const mixed = (hex, other, share) => Scatter.channels(hex)
    .map((channel, i) => Math.round(share * channel + (1 - share) * other[i]));
  const isDark = () => root.dataset.theme === "dark";
  const luminance = (rgb) => rgb.map((c) => ((c / 255 + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  // Mixed with white or black until it has so much contrast with the page.
  const legible = (hex, contrast) => {
    const paper = luminance(Scatter.channels(color("--paper-hex")));
    for (let share = 1; share > 0; share -= 0.05) {
      const rgb = mixed(hex, isDark() ? [255, 255, 255] : [0, 0, 0], share);
      const pair = [luminance(rgb), paper].sort((a, b) => b - a);
      if ((pair[0] + 0.05) / (pair[1] + 0.05) >= contrast) return rgb;
    }
    return isDark() ? [255, 255, 255] : [0, 0, 0];
  };
  const css = (rgb) => `rgb(${rgb.join(" ")})`;
  let topicInks = [];
  let theme = null; // colours that follow from light or dark, found once
  const topicColor = (topic) => css(topicInks[topic]);

  const readTheme = () => {
    root.style.setProperty("--paper-hex", isDark() ? "#12171d" : "#ffffff");
    const paper = Scatter.channels(color("--paper-hex"));
    topicInks = [isDark() ? [122, 132, 145] : [150, 158, 168],
      ...about.topics.map((topic) => (isDark() ? legible(topic.color, 3)
        : Scatter.channels(topic.color)))];
    const pale = topicInks.map((rgb, topic) =>
      rgb.map((c, i) => Math.round((topic ? 0.16 : 0.1) * c + (topic ? 0.84 : 0.9) * paper[i])));
    const sides = [mixed(color("--first"), paper, 1), mixed(color("--second"), paper, 1),
      Scatter.channels(isDark() ? "#e6eaf0" : "#1b2430")];
    const rgba = ([red, green, blue], alpha) => red | green << 8 | blue << 16 | alpha << 24;
    theme = {
      plain: Uint32Array.from(topicInks, (rgb, topic) => rgba(rgb, topic ? 215 : 130)),
      lit: Uint32Array.from(topicInks, (rgb) => rgba(rgb, 215)),
      pale: Uint32Array.from(pale, (rgb) => rgba(rgb, 200)),
      sides: Uint32Array.from([[0, 0, 0], ...sides], (rgb) => rgba(rgb, 215)),
      shade: isDark() ? "#46566b" : "#a9b6c6", paper: color("--paper-hex"), ink: color("--ink"),
      halo: isDark() ? "rgb(18 23 29 / 90%)" : "rgb(255 255 255 / 90%)", muted: color("--muted"),
      strong: css(legible(isDark() ? "#ffffff" : "#1b2430", 4.5)),
      names: about.topics.map((topic) => css(legible(topic.color, 5.5))),
    };
  };
  // Colours and passes of all points: pale ones first, those of no topic next, what is lit last.
  const inks = new Uint32Array(n);
  const passes = new Uint8Array(n);
  const recolor = () => {
    const { now, held } = found;
    const { topicOf } = Store;
    for (let row = 0; row < n; row += 1) {
      const topic = topicOf[row];
      const isNow = !now || now[row] === 1;
      const side = state.held ? (held[row] ? 1 : 0) + (isNow ? 2 : 0) : 0;
      const lit = state.held ? side > 0 : isNow;
      inks[row] = !lit ? theme.pale[topic] : side ? theme.sides[side]
        : now ? theme.lit[topic] : theme.plain[topic];
      passes[row] = !lit ? 0 : topic || now ? 2 : 1;
    }
    for (const atlas of atlases) atlas.ink(inks, passes, theme.shade);
    redraw();
  };

  // ---- drawing: at most once a frame; swiftly while the map moves, in full when it rests

  let asked = 0;
  let rest = 0;
  let names = []; // on each map
  const nameList = (panel) => {
    const of = (list, weight, size, tint) => list.map(([label, anchor, rows], i) => ({
      label, anchor, rows, height: size * 1.18, color: tint(i),
      font: `${weight} ${size}px system-ui, -apple-system, "Segoe UI", Roboto, Arial, sans-serif`,
    })).sort((a, b) => b.rows - a.rows);
    const hasColors = !panel || !Store.labels[panel]; // names of another result have none
    const main = of(about.panels[panel].names, 650, 12.5,
      (i) => (hasColors ? theme.names[i] : theme.strong));
    if (panel) return main;
    const { zoom } = view;
    const fewer = about.levels.filter((level) => level.length < main.length);
    const more = about.levels.filter((level) => level.length > main.length);
    const list = fewer.length && zoom < 1.6 ? of(fewer.at(-1), 750, 15, () => theme.strong) : [];
    const above = new Set(list.map((name) => name.label));
    list.push(...main.filter((name) => !above.has(name.label)));
    more.forEach((level, k) => {
      const known = new Set(list.map((name) => name.label));
      if (zoom > 2 * (k + 1)) {
        list.push(...of(level, 550, 11.5, () => theme.muted)
          .filter((name) => !known.has(name.label)));
      }
    });
    return list;
  };
  const redraw = (moves = false) => {
    clearTimeout(rest);
    if (asked) return;
    asked = requestAnimationFrame(() => {
      asked = 0;
      const areWhole = atlases.map((atlas) => atlas.draw(theme.paper, moves));
      names = atlases.map((atlas, panel) => atlas.names(nameList(panel)));
      drawOver();
      if (areWhole.includes(false)) rest = setTimeout(redraw, 120);
    });
  };
  const drawOver = () => {
    const marked = [...new Set([state.over, state.open])].filter((row) => row >= 0);
    const { lasso, panel } = state.now;
    atlases.forEach((atlas, i) => atlas.drawOver(names[i] ?? [], {
      halo: theme.halo, ink: theme.ink, marked, near: marked.length ? Store.near(i, marked[0]) : [],
      line: state.line ? i === state.panel && state.line : i === panel && lasso,
    }));
  };

  // ---- what is selected

  const isEmpty = (asks) => !asks.words.trim() && !asks.topics.size && !asks.groups.size &&
    !asks.lasso && asks.from === null && asks.to === null;
  let skipped = [];
  const select = (asks) => {
    if (isEmpty(asks)) return null;
    const rows = asks.lasso ? atlases[asks.panel].inside(asks.lasso) : new Uint8Array(n).fill(1);
    const keep = (holds) => {
      for (let row = 0; row < n; row += 1) if (rows[row] && !holds(row)) rows[row] = 0;
    };
    const { topicOf, groups, times, documentOf } = Store;
    skipped = [];
    if (asks.words.trim() && Store.index) {
      const answer = Store.search(asks.words);
      skipped = answer.skipped;
      keep((row) => answer.held[documentOf[row]]);
    }
    if (asks.topics.size) keep((row) => asks.topics.has(topicOf[row]));
    if (asks.groups.size) keep((row) => asks.groups.has(groups[row]));
    if (asks.from !== null) keep((row) => times[row] >= asks.from);
    if (asks.to !== null) keep((row) => times[row] < asks.to && times[row] !== NO_TIME);
    return rows;
  };
  const size = (rows) => {
    if (!rows) return n;
    let sum = 0;
    for (let row = 0; row < n; row += 1) sum += rows[row];
    return sum;
  };

  // Apply what is asked: everything on the page follows.
  let busy = 0;
  const update = async ({ quiet = false } = {}) => {
    const mine = busy += 1;
    if (state.now.words.trim() || state.held?.words.trim()) await Store.loadIndex();
    if (mine !== busy) return;
    found.held = state.held && (select(state.held) ?? new Uint8Array(n).fill(1));
    found.now = select(state.now);
    recolor();
    showNumbers();
    showTable();
    showTopics();
    showGroups();
    showTime();
    writeHash();
    if (!quiet) say(byId("state").textContent);
    clearTimeout(wordsLater);
    wordsLater = setTimeout(showWords, 30);
  };
  let wordsLater = 0;

  const change = (changes) => {
    Object.assign(state.now, changes);
    return update();
  };
  const toggled = (set, value) => {
    const changed = new Set(set);
    if (!changed.delete(value)) changed.add(value);
    return changed;
  };

  const describe = (asks) => {
    const parts = [];
    const drop = (name, value) => () => change({ [name]: value });
    if (asks.words.trim()) {
      parts.push([`holds ${asks.words.trim()}`, () => { byId("search").value = ""; change({ words: "" }); }]);
    }
    for (const topic of asks.topics) {
      parts.push([topicName(topic), () => change({ topics: toggled(asks.topics, topic) })]);
    }
    for (const group of asks.groups) {
      parts.push([groupName(group), () => change({ groups: toggled(asks.groups, group) })]);
    }
    if (asks.from !== null || asks.to !== null) {
      const [first, last] = [asks.from ?? span.first, (asks.to ?? span.stop) - 1];
      parts.push([`${day(first)} to ${day(last)}`, () => change({ from: null, to: null })]);
    }
    if (asks.lasso) {
      const { name } = about.panels[asks.panel];
      parts.push([`inside the line${name ? ` on ${name}` : ""}`, drop("lasso", null)]);
    }
    return parts;
  };

  const showNumbers = () => {
    const [count, all] = [size(found.now), plural(n, "document")];
    const title = byId("number");
    title.textContent = "";
    if (state.held) {
      add(title, "span", "first", `A: ${number(size(found.held))}`);
      title.append(" and ");
      add(title, "span", "second", `B: ${number(count)}`);
      const both = found.held.reduce((sum, one, row) =>
        sum + (one && (!found.now || found.now[row]) ? 1 : 0), 0);
      add(title, "span", "note", both ? ` \u2013 ${number(both)} in both` : "");
    } else if (found.now) {
      title.textContent = `${number(count)} of ${all}, ${percent(count / Math.max(n, 1))}`;
    } else title.textContent = `${all}, ${plural(about.topics.length, about.unit)}`;
    const list = byId("conditions");
    list.textContent = "";
    if (state.held) {
      add(list, "li", "note", `A: ${describe(state.held).map(([text]) => text).join(", ") || "all"}`);
    }
    for (const [text, remove] of describe(state.now)) {
      const button = add(add(list, "li"), "button", "", `${text} \u00d7`);
      button.type = "button";
      button.setAttribute("aria-label", `Remove: ${text}`);
      button.addEventListener("click", remove);
    }
    if (!found.now && !state.held) {
      add(list, "li", "note", `Search, draw a line, or choose ${about.unit}s${Store.groups ? ", groups" : ""}${
        Store.times ? " or a time" : ""} to select some.${about.withoutText
        ? ` ${plural(about.withoutText, "row")} without text are not on the map.` : ""}`);
    }
    const waits = state.now.words.trim() && !Store.index;
    byId("state").textContent = waits ? "this page holds no index of words"
      : (found.now ? `${number(count)} of ${all}` : "") +
        (skipped.length ? ` (too common to be searched: ${skipped.join(", ")})` : "");
    byId("take").hidden = !found.now;
    byId("clear").hidden = !found.now && !state.held;
    const hold = byId("hold");
    hold.hidden = !found.now && !state.held;
    hold.textContent = state.held ? "End the comparison" : "Compare with another";
  };

  // ---- the table of texts: only the lines that are seen exist

  const table = byId("table");
  const pad = byId("pad");
  let listed = new Uint32Array(0);
  const showTable = () => {
    const rows = state.shownSide === "held" && state.held ? found.held : found.now;
    const count = Math.min(size(rows), MOST_ROWS);
    listed = new Uint32Array(count);
    for (let row = 0, k = 0; row < n && k < count; row += 1) if (!rows || rows[row]) listed[k++] = row;
    byId("texts-title").textContent = `${plural(size(rows), "document")}${
      count < size(rows) ? `, the first ${number(count)}` : ""}`;
    table.setAttribute("aria-rowcount", String(count));
    pad.style.height = `${count * ROW}px`;
    table.scrollTop = 0;
    const choice = byId("side-choice");
    choice.hidden = !state.held;
    choice.textContent = "";
    for (const [side, text] of [["held", "A"], ["now", "B"]]) {
      const button = add(choice, "button", "", text);
      button.type = "button";
      button.setAttribute("aria-pressed", String(state.shownSide === side));
      button.addEventListener("click", () => { state.shownSide = side; showTable(); });
    }
    fillTable();
  };
  const marked = (parent, text) => {
    const pieces = Store.pieces(state.now.words).map(({ text: piece }) =>
      piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    if (!pieces.length) { parent.append(text); return; }
    // Scripts without spaces have no beginning of a word to look for.
    const runs = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
    const parts = pieces.map((piece) => (
      runs.test(piece) ? piece : `(?<![\\p{L}\\p{N}])${piece}[\\p{L}\\p{N}\\p{M}]*`));
    const hits = new RegExp(parts.join("|"), "giu");
    let at = 0;
    for (const hit of text.normalize("NFC").matchAll(hits)) {
      parent.append(text.normalize("NFC").slice(at, hit.index));
      add(parent, "mark", "", hit[0]);
      at = hit.index + hit[0].length;
    }
    parent.append(text.normalize("NFC").slice(at));
  };
  let filling = 0;
  const fillTable = async () => {
    const mine = filling += 1;
    const first = Math.max(Math.floor(table.scrollTop / ROW) - 4, 0);
    const last = Math.min(first + Math.ceil(table.clientHeight / ROW) + 9, listed.length);
    const rows = [...listed.subarray(first, last)];
    const texts = await Promise.all(rows.map((row) => Store.text(row)));
    const ids = await Promise.all(rows.map((row) => Store.id(row)));
    if (mine !== filling) return;
    const focused = document.activeElement?.dataset?.place;
    pad.textContent = "";
    rows.forEach((row, k) => {
      const line = add(pad, "div");
      line.setAttribute("role", "row");
      line.setAttribute("aria-rowindex", String(first + k + 1));
      line.setAttribute("aria-selected", String(row === state.open));
      line.dataset.place = String(first + k);
      line.tabIndex = first + k === Math.max(Number(focused ?? first), first) ? 0 : -1;
      line.style.top = `${(first + k) * ROW}px`;
      const cells = ["dot", "text", "what"].map((name) => {
        const cell = add(line, "span", name);
        cell.setAttribute("role", "cell");
        return cell;
      });
      cells[0].style.background = topicColor(Store.topicOf[row]);
      cells[0].setAttribute("aria-label", topicName(Store.topicOf[row]));
      cells[1].dir = "auto";
      marked(cells[1], texts[k].slice(0, 400));
      add(cells[2], "span", "", topicName(Store.topicOf[row]));
      add(cells[2], "span", "", facts(row, ids[k]).join(" \u00b7 "));
      if (focused === String(first + k)) line.focus({ preventScroll: true });
    });
  };
  const facts = (row, id) => [
    about.hasIds ? id : `row ${number(Store.rowNumber(row) + 1)}`,
    ...(Store.times && Store.times[row] !== NO_TIME ? [day(Store.times[row])] : []),
    ...(Store.groups && Store.groups[row] ? [groupName(Store.groups[row])] : []),
  ];
  table.addEventListener("scroll", fillTable);
  table.addEventListener("click", (event) => {
    const line = event.target.closest("[data-place]");
    if (line) openDocument(listed[Number(line.dataset.place)]);
  });
  table.addEventListener("keydown", async (event) => {
    const place = Number(document.activeElement.dataset.place ?? 0);
    if (event.key === "Enter") openDocument(listed[place]);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -Infinity, End: Infinity };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const next = Math.min(Math.max(place + steps[event.key], 0), listed.length - 1);
    const top = next * ROW;
    if (top < table.scrollTop) table.scrollTop = top;
    if (top + ROW > table.scrollTop + table.clientHeight) {
      table.scrollTop = top + ROW - table.clientHeight;
    }
    await fillTable();
    pad.querySelector(`[data-place="${next}"]`)?.focus({ preventScroll: true });
  });

  // ---- one document

  const openDocument = async (row, takesFocus = true) => {
    state.open = row;
    const card = byId("document");
    card.hidden = row < 0;
    card.textContent = "";
    drawOver();
    if (row < 0) return;
    const [text, id, url] = await Promise.all([Store.text(row), Store.id(row), Store.url(row)]);
    if (state.open !== row) return;
    card.textContent = "";
    const line = add(card, "div", "line");
    const heading = add(line, "strong");
    add(heading, "span", "dot").style.background = topicColor(Store.topicOf[row]);
    heading.append(` ${topicName(Store.topicOf[row])}`);
    const close = add(line, "button", "", "\u00d7");
    close.type = "button";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => { openDocument(-1); holders[state.panel].focus(); });
    const body = add(card, "div", "text");
    body.dir = "auto";
    body.tabIndex = 0;
    marked(body, text || "(the page holds no texts)");
    const foot = add(card, "p", "note", facts(row, id).join(" \u00b7 "));
    const shared = Store.repeats[Store.documentOf[row]];
    if (shared > 1) foot.append(` \u00b7 ${number(shared)} rows share this text`);
    if (about.cutAt && text.length >= about.cutAt) foot.append(" \u00b7 cut to keep the page small");
    if (/^https?:\/\//i.test(url)) {
      foot.append(" \u00b7 ");
      const link = add(foot, "a", "", url.length > 70 ? `${url.slice(0, 69)}\u2026` : url);
      link.href = url;
      link.rel = "noopener noreferrer";
      link.target = "_blank";
    }
    about.panels.forEach(({ name }, panel) => {
      if (panel && Store.labels[panel]) {
        const topic = Store.labels[panel][Store.documentOf[row]];
        add(card, "p", "note", `${name}: ${topic ? about.panels[panel].names[topic - 1][0] : topicName(0)}`);
      }
    });
    await showNeighbors(card, row);
    if (takesFocus) card.scrollIntoView({ block: "nearest" });
    say(`${topicName(Store.topicOf[row])}: ${text.slice(0, 300)}`);
    for (const one of pad.children) {
      one.setAttribute("aria-selected", String(listed[Number(one.dataset.place)] === row));
    }
    drawOver();
  };

  // The nearest documents on each map, and in how many lists each of them stands.
  const showNeighbors = async (card, row) => {
    const lists = about.panels.map((_, panel) => Store.near(panel, row));
    const times = new Map();
    for (const near of lists.flat()) times.set(near, (times.get(near) ?? 0) + 1);
    const texts = new Map(await Promise.all([...times.keys()].map(async (near) =>
      [near, await Store.text(near)])));
    if (state.open !== row) return;
    lists.forEach((list, panel) => {
      const { name, depth } = about.panels[panel];
      if (!depth) return;
      add(card, "h3", "", `Nearest by ${name}`);
      if (!list.length) add(card, "p", "note", "none: it has nothing in common with others");
      const items = add(card, "ol", "near");
      for (const near of list) {
        const button = add(add(items, "li"), "button");
        button.type = "button";
        button.dataset.row = String(near);
        add(button, "span", "dot").style.background = topicColor(Store.topicOf[near]);
        const text = add(button, "bdi", "", texts.get(near).slice(0, 160));
        text.dir = "auto";
        const count = times.get(near);
        add(button, "span", "note", lists.length < 2 ? "" : count === lists.length ? "in every list"
          : count === 1 ? "only here" : `in ${count} of ${lists.length}`);
      }
    });
  };
  // Whatever names a document leads to it.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-row]");
    if (!button) return;
    openDocument(Number(button.dataset.row));
    byId("maps").scrollIntoView({ block: "nearest" });
  });
  for (const [kind, shows] of [["pointerover", true], ["pointerout", false]]) {
    document.addEventListener(kind, (event) => {
      const button = event.target.closest("[data-row]");
      if (!button) return;
      state.over = shows ? Number(button.dataset.row) : -1;
      drawOver();
    });
  }

  // ---- words that set a selection apart

  const weightsOf = (rows, without) => {
    const weights = new Float64Array(Store.nDocuments);
    for (let row = 0; row < n; row += 1) {
      if ((!rows || rows[row]) && !(without && without[row])) weights[Store.documentOf[row]] += 1;
    }
    return weights;
  };
  const compared = () => {
    if (!state.held) return Store.keyness(weightsOf(found.now));
    const now = found.now ?? new Uint8Array(n).fill(1);
    const both = found.held.map((one, row) => (one && now[row] ? 1 : 0));
    return Store.keyness(weightsOf(found.held, both), weightsOf(now, both));
  };
  const showWords = async () => {
    const part = byId("words-part");
    const list = byId("words");
    if (!found.now && !state.held) { part.hidden = true; return; }
    if (!await Store.loadIndex()) { part.hidden = true; return; }
    const all = compared();
    const strongest = all.filter((one) => Math.abs(one.z) > 1.96);
    const firsts = strongest.filter((one) => one.z > 0).slice(0, LISTED);
    const lasts = strongest.filter((one) => one.z < 0).slice(-LISTED).reverse();
    part.hidden = false;
    part.querySelector("h2").textContent = state.held ? "Words that set A and B apart"
      : "Words that set it apart";
    byId("words-note").textContent = !strongest.length
      ? "None: too few words, or no difference larger than chance."
      : `Log-odds with 95 % intervals against ${state.held ? "the other selection" : "all others"}; `
        + "the numbers are occurrences in each.";
    list.textContent = "";
    const low = Math.min(...[...firsts, ...lasts].map((one) => one.low), 0);
    const high = Math.max(...[...firsts, ...lasts].map((one) => one.high), 0);
    const x = (value) => 2 + 196 * (value - low) / Math.max(high - low, 0.1);
    const row = ({ term, effect, low: from, high: to, counts }) => {
      const line = add(list, "div", "term");
      const name = add(line, "button");
      name.type = "button";
      name.title = `Search for ${term}`;
      add(name, "bdi", "", term);
      name.addEventListener("click", () => {
        byId("search").value = `"${term}"`;
        change({ words: `"${term}"` });
      });
      const svg = draw(line, "svg", { viewBox: "0 0 200 14", preserveAspectRatio: "none" });
      svg.setAttribute("role", "img");
      svg.setAttribute("aria-label",
        `log-odds ${effect.toFixed(1)}, from ${from.toFixed(1)} to ${to.toFixed(1)}`);
      const ink = state.held ? color(effect > 0 ? "--first" : "--second") : color("--ink");
      draw(svg, "line", { x1: x(0), x2: x(0), y1: 0, y2: 14, stroke: color("--edge") });
      draw(svg, "line", { x1: x(from), x2: x(to), y1: 7, y2: 7, stroke: ink, "stroke-width": 1.5 });
      draw(svg, "rect", { x: x(effect) - 2, y: 4, width: 4, height: 6, fill: ink });
      add(line, "span", "figures", `${number(counts[0])} : ${number(counts[1])}`);
    };
    firsts.forEach(row);
    if (firsts.length && lasts.length) {
      add(list, "p", "note", state.held ? "\u2026 and of B" : "\u2026 and rarer than elsewhere");
    }
    lasts.forEach(row);
    if (strongest.length) {
      const axis = add(list, "div", "axis");
      add(axis, "span");
      const ends = add(axis, "span", "ends");
      for (const end of [low, high]) add(ends, "span", "", end ? end.toFixed(1) : "0");
      add(axis, "span", "n", `of ${number(all.length)}`);
    }
  };

  // ---- topics and groups: bars, with the share of all documents as a line

  const counted = (of, most, rows) => {
    const counts = new Uint32Array(most);
    for (let row = 0; row < n; row += 1) if (!rows || rows[row]) counts[of[row]] += 1;
    return counts;
  };
  const showBars = (holder, name, of, labels, tint, chosen, choose) => {
    const all = counted(of, labels.length, null);
    const sides = state.held ? [found.held, found.now] : [found.now];
    const counts = sides.map((rows) => counted(of, labels.length, rows));
    const totals = counts.map((one) => Math.max(one.reduce((a, b) => a + b, 0), 1));
    const shares = counts.map((one, side) => [...one].map((c) => c / totals[side]));
    const order = [...labels.keys()].filter((i) => all[i]).sort((a, b) =>
      (a === 0) - (b === 0) || Math.max(...shares.map((s) => s[b])) - Math.max(...shares.map((s) => s[a]))
      || all[b] - all[a] || a - b);
    const scale = Math.max(...shares.flatMap((s) => s), ...[...all].map((c) => c / Math.max(n, 1)), 1e-9);
    const shown = state.unfolded.has(name) ? order : order.filter((i, place) => chosen.has(i) ||
      (place < LISTED + 2 && shares.some((share) => share[i])));
    const focused = holder.contains(document.activeElement) ? document.activeElement.dataset.item : null;
    holder.textContent = "";
    for (const i of shown) {
      const button = add(holder, "button", "row");
      button.type = "button";
      button.dataset.item = String(i);
      button.setAttribute("aria-pressed", String(chosen.has(i)));
      const dot = add(button, "span", tint ? "dot" : "");
      if (tint) dot.style.background = tint(i);
      add(button, "bdi", "", labels[i]).dir = "auto";
      button.title = labels[i];
      const svg = draw(button, "svg", { viewBox: "0 0 92 12", "aria-hidden": "true" });
      const height = 10 / sides.length;
      shares.forEach((share, side) => draw(svg, "rect", {
        x: 0, y: 1 + side * height, height: height - (state.held ? 0.5 : 0),
        width: 90 * share[i] / scale,
        fill: state.held ? color(side ? "--second" : "--first") : tint ? tint(i) : color("--muted"),
      }));
      if (found.now || state.held) {
        const x = 90 * all[i] / Math.max(n, 1) / scale;
        draw(svg, "line", { x1: x, x2: x, y1: 0, y2: 12, stroke: color("--ink"), "stroke-width": 1.5 });
      }
      add(button, "span", "figures", state.held
        ? `${percent(shares[0][i])} : ${percent(shares[1][i])}`
        : `${number(counts[0][i])}, ${percent(shares[0][i])}`);
      button.addEventListener("click", () => choose(i));
    }
    if (shown.length < order.length || state.unfolded.has(name)) {
      const more = add(holder, "button", "more", state.unfolded.has(name) ? "Show fewer"
        : `and ${number(order.length - shown.length)} more`);
      more.type = "button";
      more.addEventListener("click", () => {
        state.unfolded = toggled(state.unfolded, name);
        showBars(holder, name, of, labels, tint, chosen, choose);
      });
    }
    if (focused !== null) holder.querySelector(`[data-item="${focused}"]`)?.focus();
  };
  const showTopics = () => showBars(byId("topics"), "topics", Store.topicOf,
    [topicName(0), ...about.topics.map((topic) => topic.label)], topicColor, state.now.topics,
    (topic) => change({ topics: toggled(state.now.topics, topic) }));
  const showGroups = () => {
    byId("groups-part").hidden = !Store.groups;
    if (!Store.groups) return;
    byId("groups-title").textContent = `By ${about.columns.group}`;
    showBars(byId("groups"), "groups", Store.groups, ["(none)", ...about.groups], null,
      state.now.groups, (group) => change({ groups: toggled(state.now.groups, group) }));
  };

  // ---- time: bins of whole days, months or years; a range is chosen by bins

  let span = null;
  const readTimes = () => {
    if (!Store.times) return;
    let [low, high] = [Infinity, -Infinity];
    for (const time of Store.times) {
      if (time === NO_TIME) continue;
      low = Math.min(low, time);
      high = Math.max(high, time);
    }
    if (low > high) return;
    const days = (high - low) / 1440;
    const edges = [];
    const at = new Date(low * 60000);
    const [year, month, date] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
    const every = Math.max(Math.ceil(days / 365.25 / 100), 1);
    const step = days <= 100 ? (k) => Date.UTC(year, month, date + k)
      : days <= 700 ? (k) => Date.UTC(year, month, date + 7 * k)
        : days <= 3000 ? (k) => Date.UTC(year, month + k, 1)
          : (k) => new Date(0).setUTCFullYear(year + k * every, 0, 1);
    for (let k = 0; !edges.length || edges.at(-1) <= high; k += 1) edges.push(step(k) / 60000);
    const bins = new Int32Array(n).fill(-1);
    for (let row = 0; row < n; row += 1) {
      const time = Store.times[row];
      if (time === NO_TIME) continue;
      let [first, last] = [0, edges.length - 1];
      while (first < last - 1) {
        const middle = (first + last) >> 1;
        if (edges[middle] <= time) first = middle; else last = middle;
      }
      bins[row] = first;
    }
    span = { edges, bins, count: edges.length - 1, first: edges[0], stop: edges.at(-1),
      unit: days <= 100 ? "day" : days <= 700 ? "week" : days <= 3000 ? "month"
        : every > 1 ? `${every} years` : "year", shown: days <= 700 ? 10 : days <= 3000 ? 7 : 4 };
    for (const id of ["from", "to"]) byId(id).max = String(span.count - 1);
  };
  const chosenBins = () => {
    const { from, to } = state.now;
    return [from === null ? 0 : Math.max(span.edges.indexOf(from), 0),
      to === null ? span.count - 1 : Math.max(span.edges.indexOf(to) - 1, 0)];
  };
  const chooseBins = (first, last) => {
    const [from, to] = [Math.min(first, last), Math.max(first, last)];
    const all = from === 0 && to === span.count - 1;
    return change({ from: all ? null : span.edges[from], to: all ? null : span.edges[to + 1] });
  };
  const showTime = () => {
    byId("time-part").hidden = !span;
    if (!span) return;
    const sides = state.held ? [found.held, found.now] : found.now ? [null, found.now] : [null];
    const counts = sides.map((rows) => {
      const sums = new Uint32Array(span.count);
      for (let row = 0; row < n; row += 1) {
        if (span.bins[row] >= 0 && (!rows || rows[row])) sums[span.bins[row]] += 1;
      }
      return sums;
    });
    const inks = state.held ? [color("--first"), color("--second")]
      : [color("--edge"), color("--accent")];
    const most = counts.map((one) => Math.max(one.reduce((a, b) => Math.max(a, b), 0), 1));
    const peak = (one, side) => one.includes(most[side]) ? `${number(most[side])} in ${
      day(span.edges[one.indexOf(most[side])]).slice(0, span.shown)}` : "none";
    byId("time-note").textContent = `${about.columns.time}, by ${span.unit}; `
      + (state.held ? "each to its own height: " : "") + counts.map((one, side) =>
        `${state.held ? "AB"[side] : side ? "selected" : "all"} at most ${peak(one, side)}`).join("; ");
    const holder = byId("time");
    holder.textContent = "";
    const svg = draw(holder, "svg", { viewBox: `0 0 ${span.count} 74`, preserveAspectRatio: "none",
      role: "img", "aria-label": byId("time-note").textContent });
    const [first, last] = chosenBins();
    if (first > 0 || last < span.count - 1) {
      draw(svg, "rect", { x: first, width: last - first + 1, y: 0, height: 74, fill: color("--wash") });
    }
    counts.forEach((one, side) => {
      const [x, width] = state.held ? [side ? 0.5 : 0.05, 0.42] : [0.06, 0.88];
      for (let bin = 0; bin < span.count; bin += 1) {
        if (!one[bin]) continue;
        const height = Math.max(70 * one[bin] / most[side], 1) * (state.held || !side ? 1 : 0.8);
        draw(svg, "rect", { x: bin + x, width, y: 74 - height, height, fill: inks[side] });
      }
    });
    byId("from").value = String(first);
    byId("to").value = String(last);
    for (const [id, bin] of [["from", first], ["to", last]]) {
      byId(id).setAttribute("aria-valuetext", day(span.edges[bin]));
    }
    let begin = -1;
    const bin = (event) => {
      const { left, width } = svg.getBoundingClientRect();
      return Math.min(Math.max(Math.floor((event.clientX - left) / width * span.count), 0), span.count - 1);
    };
    svg.addEventListener("pointerdown", (event) => { begin = bin(event); event.preventDefault(); });
    svg.addEventListener("pointerup", (event) => { if (begin >= 0) chooseBins(begin, bin(event)); });
  };
  for (const id of ["from", "to"]) {
    byId(id).addEventListener("input", () => chooseBins(Number(byId("from").value), Number(byId("to").value)));
  }

  // ---- leaving the page: ids, a filter, the map

  const save = (blob, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  };
  const cell = (value) => {
    const text = String(value);
    const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text; // no formula in a spreadsheet
    return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
  };
  const chosenRows = () => [...listedOf(found.now)];
  const listedOf = (rows) => {
    const list = [];
    for (let row = 0; row < n; row += 1) if (!rows || rows[row]) list.push(row);
    return list;
  };
  const csv = async () => {
    const label = byId("label").value.trim();
    const lines = [["row", ...(about.hasIds ? ["id"] : []), about.unit, `${about.unit}_label`,
      ...(label ? ["label"] : [])].join(",")];
    for (const row of chosenRows()) {
      const topic = Store.topicOf[row];
      lines.push([Store.rowNumber(row), ...(about.hasIds ? [await Store.id(row)] : []), topic - 1,
        topic ? topicName(topic) : "", ...(label ? [label] : [])].map((value, k) =>
        (typeof value === "number" ? value : cell(value))).join(","));
    }
    save(new Blob(["\ufeff", lines.join("\r\n"), "\r\n"], { type: "text/csv;charset=utf-8" }),
      "selection.csv");
  };
  const copy = async (text, what) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = add(document.body, "textarea", "unseen", text);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    byId("state").textContent = `${what} copied`;
    say(`${what} copied`);
  };
  // What a filter of embedtopics can say is said as one; a line drawn by hand is a list of rows.
  const filter = () => {
    const { words, topics, groups, lasso, from, to } = state.now;
    if (words.trim() || lasso || (topics.size && about.unit !== "topic")) return `corpus.take([${chosenRows().map(Store.rowNumber).join(", ")}])`;
    const quoted = (text) => `'${text.replace(/\\/g, "\\\\").replace(/'/g, "''").replace(/\n/g, "\\n")
      .replace(/\r/g, "\\r").replace(/\t/g, "\\t")}'`;
    const named = (name) => (/^[\p{L}_][\p{L}\p{N}_]*$/u.test(name) ? name
      : `"${name.replace(/\\/g, "\\\\").replace(/"/g, '""')}"`);
    const { time, group } = about.columns;
    const parts = [];
    if (topics.size) parts.push(`topic in (${[...topics].map((t) => t - 1).join(", ")})`);
    const known = [...groups].filter(Boolean).map((g) => quoted(about.groups[g - 1]));
    const any = known.length ? [`${named(group)} in (${known.join(", ")})`] : [];
    if (groups.has(0)) any.push(`${named(group)} is null`);
    if (any.length) parts.push(any.length > 1 ? `(${any.join(" or ")})` : any[0]);
    if (from !== null) parts.push(`${named(time)} >= '${day(from)}'`);
    if (to !== null) parts.push(`${named(time)} < '${day(to)}'`);
    return parts.join(" and ");
  };
  byId("csv").addEventListener("click", csv);
  byId("copy-ids").addEventListener("click", async () => {
    const rows = chosenRows();
    const ids = [];
    for (const row of rows) ids.push(await Store.id(row));
    copy(ids.join("\n"), plural(rows.length, about.hasIds ? "id" : "row number"));
  });
  byId("copy-filter").addEventListener("click", () => copy(filter(), "filter"));
  // The corner of each map beside the first one's, in pixels of the page.
  const corners = () => holders.map((holder) => {
    const [own, first] = [holder, holders[0]].map((one) => one.getBoundingClientRect());
    return [own.left - first.left, own.top - first.top];
  });
  const outer = (sizes) => [0, 1].map((side) =>
    Math.max(...corners().map((corner, i) => corner[side] + sizes(i)[side])));
  byId("png").addEventListener("click", () => {
    const { ratio } = atlases[0];
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = outer((i) => [holders[i].clientWidth, holders[i].clientHeight])
      .map((side) => side * ratio);
    const context = canvas.getContext("2d");
    context.fillStyle = theme.paper;
    context.fillRect(0, 0, canvas.width, canvas.height);
    corners().forEach(([left, top], i) => {
      context.drawImage(atlases[i].picture(theme.paper), left * ratio, top * ratio);
    });
    canvas.toBlob((blob) => save(blob, "map.png"));
  });
  byId("svg").addEventListener("click", () => {
    const [width, height] = outer((i) => [holders[i].clientWidth, holders[i].clientHeight]);
    const image = document.createElementNS(SVG, "svg");
    for (const [name, value] of Object.entries({ xmlns: SVG, width, height,
      viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, Arial, sans-serif" })) {
      image.setAttribute(name, value);
    }
    draw(image, "rect", { width, height, fill: color("--paper-hex") });
    corners().forEach((corner, i) => {
      drawSvg(draw(image, "g", { transform: `translate(${corner.join(" ")})` }), atlases[i], names[i]);
    });
    save(new Blob([new XMLSerializer().serializeToString(image)], { type: "image/svg+xml" }), "map.svg");
  });
  const drawSvg = (image, atlas, named) => {
    const { clientWidth: width, clientHeight: height } = atlas.holder;
    const radius = (atlas.radius() / atlas.ratio).toFixed(2);
    const { now } = found;
    for (const lit of [0, 1]) {
      const part = draw(image, "g", { "fill-opacity": lit ? 0.85 : 0.3 });
      for (const row of atlas.order) {
        if ((!now || now[row] ? 1 : 0) !== lit) continue;
        const [cx, cy] = atlas.at(row);
        if (cx < 0 || cy < 0 || cx > width || cy > height) continue;
        draw(part, "circle", { cx: cx.toFixed(1), cy: cy.toFixed(1), r: radius,
          fill: lit ? topicColor(Store.topicOf[row]) : color("--edge") });
      }
    }
    for (const name of named) {
      name.lines.forEach((text, k) => {
        draw(image, "text", { x: name.x.toFixed(1), y: (name.y + (k - (name.lines.length - 1) / 2) *
          name.height).toFixed(1), fill: name.color, stroke: color("--paper-hex"), "stroke-width": 3,
        "paint-order": "stroke", "stroke-linejoin": "round", "text-anchor": "middle",
        "dominant-baseline": "central", "font-size": name.height / 1.18, "font-weight": 650,
        }).textContent = text;
      });
    }
  };

  // ---- the address holds the view and what is asked

  const spelled = (asks) => {
    const parts = new URLSearchParams();
    if (asks.words.trim()) parts.set("q", asks.words.trim());
    if (asks.topics.size) parts.set("topics", [...asks.topics].map((t) => t - 1).join("."));
    if (asks.groups.size) parts.set("groups", [...asks.groups].join("."));
    if (asks.from !== null) parts.set("from", asks.from.toString(36));
    if (asks.to !== null) parts.set("to", asks.to.toString(36));
    if (asks.lasso) parts.set("line", asks.lasso.map((v) => Math.round(v).toString(36)).join("."));
    if (asks.lasso && asks.panel) parts.set("panel", asks.panel);
    return parts;
  };
  const read = (parts) => {
    const asks = nothing();
    const list = (name) => (parts.get(name) ?? "").split(".").filter(Boolean);
    const whole = (name, least, most) => new Set(list(name).map(Number)
      .filter((i) => Number.isInteger(i) && i >= least && i <= most));
    const time = (name) => {
      const value = parseInt(parts.get(name) ?? "", 36);
      return span && span.edges.includes(value) ? value : null;
    };
    asks.words = parts.get("q") ?? "";
    asks.topics = new Set([...whole("topics", -1, about.topics.length - 1)].map((t) => t + 1));
    if (Store.groups) asks.groups = whole("groups", 0, about.groups.length);
    [asks.from, asks.to] = [time("from"), time("to")];
    const line = list("line").map((v) => parseInt(v, 36)).filter(Number.isFinite);
    asks.panel = [...whole("panel", 0, about.panels.length - 1)][0] ?? 0;
    if (line.length >= 6) asks.lasso = line.slice(0, 2 * Math.floor(line.length / 2));
    return asks;
  };
  let hashLater = 0;
  let written = "";
  const writeHash = () => {
    clearTimeout(hashLater);
    hashLater = setTimeout(() => {
      const parts = spelled(state.now);
      const { x, y, zoom } = view;
      if (zoom !== 1) parts.set("view", [x, y, 1000 * zoom].map((v) => Math.round(v).toString(36)).join("."));
      if (state.held) parts.set("a", spelled(state.held).toString());
      for (const painter of ["cpu", "gl"]) {
        if (new URLSearchParams(location.hash.slice(1)).has(painter)) parts.set(painter, "");
      }
      written = parts.size ? `#${parts}` : "";
      try {
        history.replaceState(null, "", written || location.href.split("#")[0]);
      } catch { /* a page inside a notebook has no address */ }
    }, 250);
  };
  const readHash = () => {
    const parts = new URLSearchParams(location.hash.slice(1));
    state.now = read(parts);
    state.held = parts.has("a") ? read(new URLSearchParams(parts.get("a"))) : null;
    const [x, y, zoom] = (parts.get("view") ?? "").split(".").map((v) => parseInt(v, 36));
    if ([x, y, zoom].every(Number.isFinite) && zoom > 0) Object.assign(view, { x, y, zoom: zoom / 1000 });
    byId("search").value = state.now.words;
  };
  window.addEventListener("hashchange", () => {
    if (location.hash === written) return;
    readHash();
    update();
  });

  // ---- the map under the hand

  const tip = byId("tip");
  const pointAt = async (row, event) => {
    if (row === state.over) return;
    state.over = row;
    drawOver();
    tip.hidden = row < 0;
    if (row < 0) return;
    tip.textContent = "";
    const head = add(tip, "div", "topic");
    add(head, "span", "dot").style.background = topicColor(Store.topicOf[row]);
    add(head, "bdi", "", topicName(Store.topicOf[row]));
    const body = add(tip, "p");
    body.dir = "auto";
    moveTip(event);
    const text = await Store.text(row);
    if (state.over !== row) return;
    body.textContent = "";
    marked(body, text.length > 240 ? `${text.slice(0, 239)}\u2026` : text);
    moveTip(event);
  };
  const moveTip = ({ clientX, clientY }) => {
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(Math.min(clientX + 14, innerWidth - width - 8), 8)}px`;
    tip.style.top = `${clientY + 18 + height > innerHeight ? Math.max(clientY - height - 12, 4) : clientY + 18}px`;
  };
  const zoomBy = (factor) => {
    const map = holders[state.panel];
    atlases[state.panel].zoom(factor, map.clientWidth / 2, map.clientHeight / 2);
    redraw();
    writeHash();
  };
  const showAll = () => { atlases[0].reset(); redraw(); writeHash(); };
  const clear = () => {
    state.held = null;
    state.now = nothing();
    state.shownSide = "now";
    byId("search").value = "";
    openDocument(-1);
    update();
  };
  const follow = (map, panel) => {
    const atlas = atlases[panel];
    const pointers = new Map();
    let pinch = 0;
    const place = (event) => {
      const { left, top } = map.getBoundingClientRect();
      return [event.clientX - left, event.clientY - top];
    };
    map.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      state.panel = panel;
      map.focus({ preventScroll: true });
      map.setPointerCapture(event.pointerId);
      const at = place(event);
      pointers.set(event.pointerId, { at, begin: at, moved: false });
      if (pointers.size === 1 && (event.shiftKey || state.tool === "lasso")) {
        state.line = atlas.under(...at);
      } else state.line = null;
      pinch = 0;
    });
    map.addEventListener("pointermove", (event) => {
      const at = place(event);
      const own = pointers.get(event.pointerId);
      if (!own) {
        pointAt(atlas.nearest(...at), event);
        return;
      }
      const [right, down] = [at[0] - own.at[0], at[1] - own.at[1]];
      own.moved ||= Math.hypot(at[0] - own.begin[0], at[1] - own.begin[1]) > 4;
      own.at = at;
      pointAt(-1, event);
      if (state.line) {
        state.line.push(...atlas.under(...at));
        drawOver();
      } else if (pointers.size === 2) {
        const [a, b] = [...pointers.values()].map((one) => one.at);
        const apart = Math.hypot(a[0] - b[0], a[1] - b[1]);
        if (pinch) atlas.zoom(apart / pinch, (a[0] + b[0]) / 2, (a[1] + b[1]) / 2);
        pinch = apart;
        redraw(true);
      } else if (own.moved) {
        atlas.move(right, down);
        redraw(true);
      }
    });
    const release = (event) => {
      const own = pointers.get(event.pointerId);
      pointers.delete(event.pointerId);
      if (!own) return;
      const { line } = state;
      state.line = null;
      if (line && own.moved && line.length >= 6) change({ lasso: line.map(Math.round), panel });
      else if (!own.moved && event.type === "pointerup") {
        const row = atlas.nearest(...own.at);
        openDocument(row);
        drawOver();
      } else {
        redraw();
        writeHash();
      }
    };
    map.addEventListener("pointerup", release);
    map.addEventListener("pointercancel", release);
    map.addEventListener("pointerleave", (event) => pointAt(-1, event));
    map.addEventListener("wheel", (event) => {
      event.preventDefault();
      atlas.zoom(Math.exp(-event.deltaY * (event.deltaMode ? 0.05 : 0.0015)), ...place(event));
      redraw(true);
      writeHash();
    }, { passive: false });
    map.addEventListener("dblclick", (event) => { atlas.zoom(2, ...place(event)); redraw(); writeHash(); });
    map.addEventListener("keydown", (event) => {
      const way = WAYS[event.key];
      if (way && event.shiftKey) {
        atlas.move(-60 * way[0], -60 * way[1]);
        redraw();
      } else if (way) {
        const look = found.now ? Int8Array.from(found.now, (one) => one - 1) : atlas.visible;
        const row = state.open < 0 ? Scatter.nearest(atlas.places, look, view.x, view.y, 1e9)
          : atlas.next(look, state.open, way);
        if (row >= 0) {
          openDocument(row, false);
          const [left, top] = atlas.at(row);
          if (left < 0 || top < 0 || left > map.clientWidth || top > map.clientHeight) {
            atlas.move(map.clientWidth / 2 - left, map.clientHeight / 2 - top);
            redraw();
          }
        }
      } else if (event.key === "Enter" && state.open >= 0) byId("document").focus();
      else if (event.key === "+" || event.key === "=") zoomBy(1.5);
      else if (event.key === "-") zoomBy(1 / 1.5);
      else if (event.key === "0") showAll();
      else return;
      event.preventDefault();
    });
    map.addEventListener("focus", () => { state.panel = panel; });
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (state.open >= 0) { openDocument(-1); holders[state.panel].focus(); } else clear();
    } else if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
      event.preventDefault();
      byId("search").focus();
    }
  });
  byId("nearer").addEventListener("click", () => zoomBy(1.5));
  byId("further").addEventListener("click", () => zoomBy(1 / 1.5));
  byId("whole").addEventListener("click", showAll);
  for (const button of document.querySelectorAll("button[data-tool]")) {
    button.addEventListener("click", () => {
      state.tool = byId("maps").dataset.tool = button.dataset.tool;
      for (const other of document.querySelectorAll("button[data-tool]")) {
        other.setAttribute("aria-pressed", String(other === button));
      }
    });
  }

  byId("search").addEventListener("input", (event) => change({ words: event.target.value }));
  byId("search").addEventListener("focus", () => Store.loadIndex(), { once: true });
  byId("clear").addEventListener("click", clear);
  byId("hold").addEventListener("click", () => {
    if (state.held) {
      state.held = null;
    } else {
      state.held = state.now;
      state.now = nothing();
      byId("search").value = "";
    }
    state.shownSide = "now";
    update();
  });
  byId("about-study").addEventListener("click", () => byId("study").scrollIntoView());
  byId("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    readTheme();
    update({ quiet: true });
  });
  window.addEventListener("beforeprint", () => atlases.forEach((atlas) => atlas.draw(theme.paper, false)));

  const begin = async () => {
    root.dataset.theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
    await Store.load();
    byId("busy").remove();
    atlases = holders.map((holder, panel) => Atlas.make(holder, { n, places: Store.places[panel],
      span: about.span, view }));
    const resize = () => atlases.forEach((atlas) => atlas.resize());
    resize();
    holders.forEach(follow);
    byId("topics-title").textContent = about.topicsTitle;
    const [map] = holders;
    map.dataset.painter = atlases[0].kind;
    readTheme();
    readTimes();
    readHash();
    await update({ quiet: true });
    new ResizeObserver(() => { resize(); redraw(); fillTable(); }).observe(map);
    requestAnimationFrame(() => requestAnimationFrame(() => {
      performance.mark("drawn");
      map.dataset.ready = "1";
    }));
  };
  begin();
})();
