"use strict";
// Everything that comes from the server is put on the page as text, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const STEP = 10;
  const FEW = 8; // values of a column that are shown at once
  const NEAR = 0.1; // relevance below which nothing is close
  const MODES = { hybrid: "words and meaning", dense: "meaning", lexical: "words" };
  let about = null;
  let state = empty();
  let latest = 0; // number of the latest query; older answers are dropped
  let opened = null; // the document in the reader

  function empty() {
    return { q: "", mode: "", filters: [], like: [], unlike: [], passage: "", k: STEP };
  }

  async function ask(path, parameters = {}) {
    const search = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters))
      for (const one of Array.isArray(value) ? value : [value]) if (one !== "") search.append(name, one);
    let response;
    try {
      response = await fetch(`${path}?${search}`, { headers: { "X-Token": token } });
    } catch {
      throw new Error("The server does not answer; restart it and open the address that it prints.");
    }
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || "The server refused the query.");
    return answer;
  }

  const make = (name, text, parent, kind) => {
    const element = document.createElement(name);
    if (text !== undefined && text !== "") element.textContent = text;
    if (kind) element.className = kind;
    if (parent) parent.append(element);
    return element;
  };
  const button = (text, parent, kind, act) => {
    const element = make("button", text, parent, kind);
    element.type = "button";
    element.addEventListener("click", act);
    return element;
  };
  const complain = (error) => { $("message").textContent = error.message || String(error); };
  const TIME = /^(\d{4}-\d\d-\d\d)T(?:00:00:00|(\d\d:\d\d)[\d:.]*)$/;
  function shown(value) {
    if (typeof value === "boolean") return value ? "yes" : "no";
    if (Array.isArray(value)) return value.join(", ");
    return value === null ? "–" : String(value).replace(TIME, (_, day, clock) => clock ? `${day} ${clock}` : day);
  }

  // Filters: values of one column are alternatives, columns are all required

  const quoted = (text, mark) => mark + text.replaceAll("\\", "\\\\").replaceAll(mark, mark + mark) + mark;
  function condition(column, value) {
    const kind = about.columns[column];
    const plain = kind === "integer" || kind === "boolean";
    return `${quoted(column, '"')} == ${plain ? value : quoted(String(value), "'")}`;
  }
  function where(without) {
    const columns = new Map();
    for (const [column, value] of state.filters)
      if (column !== without) columns.set(column, [...(columns.get(column) || []), condition(column, value)]);
    return [...columns.values()].map((one) => `(${one.join(" or ")})`).join(" and ");
  }
  const isOn = (column, value) => state.filters.some(([c, v]) => c === column && v === value);
  function toggle(column, value) {
    const others = state.filters.filter(([c, v]) => c !== column || v !== value);
    go({ filters: others.length < state.filters.length ? others : [...others, [column, value]], k: STEP });
  }

  function drawFacets(facets) {
    const focused = document.activeElement?.dataset?.facet;
    $("facets").replaceChildren();
    for (const column of about.facets) {
      const values = facets[column] || [];
      if (!values.length) continue;
      if (values.every(([value]) => /^\d{4}$/.test(value))) values.sort(([a], [b]) => a - b);  // years
      const box = make("fieldset", "", $("facets"));
      make("legend", column, box);
      values.forEach(([value, n], place) => {
        const label = make("label", "", box);
        label.hidden = place >= FEW && !isOn(column, value);
        const check = make("input", "", label);
        check.type = "checkbox";
        check.checked = isOn(column, value);
        check.dataset.facet = JSON.stringify([column, value]);
        check.addEventListener("change", () => toggle(column, value));
        make("span", shown(value), label);
        make("small", n.toLocaleString(), label);
        if (check.dataset.facet === focused) check.focus();
      });
      const hidden = [...box.querySelectorAll("label")].filter((one) => one.hidden);
      if (hidden.length)
        button(`${hidden.length} more`, box, "link", (event) => {
          for (const one of hidden) one.hidden = false;
          event.target.remove();
          hidden[0].querySelector("input").focus();
        });
    }
  }

  async function countFacets(number) {
    const active = [...new Set(state.filters.map(([column]) => column))];
    const rest = about.facets.filter((column) => !active.includes(column));
    const common = { q: state.q, mode: state.mode };
    const answers = await Promise.all([
      rest.length ? ask("facets", { ...common, by: rest, where: where() }) : { facets: {} },
      ...active.map((column) => ask("facets", { ...common, by: column, where: where(column) })),
    ]);
    if (number === latest) drawFacets(Object.assign({}, ...answers.map((one) => one.facets)));
  }

  // Hits

  const isSimilar = () => state.like.length > 0 || state.unlike.length > 0 || state.passage !== "";
  const titleOf = (item) => shown(item.metadata.title ?? item.metadata.Title ?? item.id);

  function drawHit(hit) {
    const item = make("li", "", $("hits"));
    const head = make("h2", "", item);
    button(titleOf(hit), head, "", () => read(hit)).dataset.hit = hit.id;
    const known = about.facets.filter((name) => hit.metadata[name] !== null && hit.metadata[name] !== undefined && shown(hit.metadata[name]) !== "");
    const facts = known.filter((name) => hit.metadata[name] !== false)
      .map((name) => hit.metadata[name] === true ? name : shown(hit.metadata[name]));
    if (hit.topic !== null && !known.includes("topic_name")) facts.push(`topic ${hit.topic}`);
    if (facts.length) make("p", facts.join(" · "), item, "about");
    const snippet = make("p", "", item, "snippet");
    for (const [text, marked] of hit.snippet)
      if (marked) make("mark", text, snippet); else snippet.append(text);
    const why = make("p", "", item, "why");
    if (hit.relevance !== null) bar(why, hit.relevance);
    const words = Object.keys(hit.terms);
    if (words.length) { const one = make("span", "words ", why); make("b", words.join(", "), one); }
    if (hit.similarity !== null) { const one = make("span", "meaning ", why); make("b", hit.similarity.toFixed(2), one); }
    if (hit.field) make("span", `in ${hit.field}`, why);
    if (about.modes.includes("dense")) {
      button("More like this", why, "link", () => like(hit.id));
      if (isSimilar()) button("Less like this", why, "link", () => go({ unlike: [...state.unlike, hit.id], k: STEP }));
    }
  }

  function bar(parent, share) {
    const svg = "http://www.w3.org/2000/svg";
    const picture = document.createElementNS(svg, "svg");
    picture.setAttribute("viewBox", "0 0 100 10");
    picture.setAttribute("preserveAspectRatio", "none");
    picture.setAttribute("role", "img");
    picture.setAttribute("aria-label", `relevance ${share.toFixed(2)}`);
    for (const [kind, width] of [["track", 100], ["level", 100 * share]]) {
      const part = document.createElementNS(svg, "rect");
      part.setAttribute("class", kind);
      for (const [name, value] of Object.entries({ x: 0, y: 0, width, height: 10, rx: 4 })) part.setAttribute(name, value);
      picture.append(part);
    }
    parent.append(picture);
  }

  const like = (id) => go({ ...empty(), mode: state.mode, filters: state.filters, like: [...new Set([...state.like, id])], unlike: state.unlike });

  function drawAsked() {
    $("asked").replaceChildren();
    const chip = (text, change) => {
      const one = button(`${text} ×`, $("asked"), "chip", () => go({ ...change, k: STEP }));
      one.setAttribute("aria-label", `Remove: ${text}`);
    };
    const without = (list, id) => list.filter((one) => one !== id);
    for (const id of state.like) chip(`like ${id}`, { like: without(state.like, id) });
    for (const id of state.unlike) chip(`not like ${id}`, { unlike: without(state.unlike, id) });
    if (state.passage) chip(`like “${state.passage.slice(0, 60)}”`, { passage: "" });
    for (const [column, value] of state.filters)
      chip(`${column}: ${shown(value)}`, { filters: state.filters.filter(([c, v]) => c !== column || v !== value) });
  }

  async function update() {
    const number = ++latest;
    drawAsked();
    $("query").value = state.q;
    $("mode").value = state.mode;
    document.title = state.q ? `${state.q} – ${about.name}` : about.name;
    $("message").textContent = "";
    $("suggestion").hidden = true;
    const facets = countFacets(number).catch(complain);
    const hasQuestion = state.q.trim() || state.like.length || state.passage;
    try {
      if (!hasQuestion) {
        $("hits").replaceChildren();
        $("more").hidden = true;
        $("status").textContent = "Enter a query. Filters apply to the next search.";
        return;
      }
      $("status").textContent = "Searching …";
      const common = { k: state.k, where: where() };
      const found = isSimilar()
        ? await ask("similar", { ...common, id: state.like, unlike: state.unlike, passage: state.passage })
        : await ask("search", { ...common, q: state.q, mode: state.mode });
      if (number !== latest) return;
      drawFound(found);
    } catch (error) {
      if (number !== latest) return;
      $("status").textContent = "";
      $("hits").replaceChildren();
      $("more").hidden = true;
      complain(error);
    } finally {
      await facets;
    }
  }

  function drawFound(found) {
    $("hits").replaceChildren();
    for (const hit of found.hits) drawHit(hit);
    $("more").hidden = found.hits.length < state.k || state.k >= 200;
    const n = found.hits.length;
    const far = n && found.hits.every((hit) => hit.relevance !== null && hit.relevance < NEAR);
    const notes = found.notes.map((note) => note.replace(/ Did you mean .*$/, "")); // it is a button below
    let lead = n === 0 ? "No documents found." : `The top ${n}.`;
    if (far) lead = "No document is close to this query; these are the nearest.";
    $("status").textContent = [lead, ...notes].join(" ");
    const words = Object.entries(found.suggestions);
    if (words.length) {
      let better = state.q;
      for (const [word, near] of words)
        better = better.replace(new RegExp(word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i"), () => near);
      $("suggestion").replaceChildren("Did you mean ");
      button(better, $("suggestion"), "link", () => go({ q: better, k: STEP }));
      $("suggestion").hidden = false;
    }
  }

  // Reading

  async function read(hit) {
    try {
      const document_ = await ask(`documents/${encodeURIComponent(hit.id)}`);
      opened = document_.id;
      $("read-title").textContent = titleOf(document_);
      const [begin, end] = codeUnits(document_.text, hit.span);
      const { text } = document_;
      $("read-text").replaceChildren();
      addMarked(text.slice(0, begin), hit, $("read-text"));
      const passage = make("span", "", $("read-text"), begin > 0 || end < text.length ? "passage" : "");
      addMarked(text.slice(begin, end), hit, passage);
      addMarked(text.slice(end), hit, $("read-text"));
      $("read-data").replaceChildren();
      for (const [name, value] of Object.entries({ id: document_.id, ...document_.metadata })) {
        make("dt", name, $("read-data"));
        make("dd", shown(value), $("read-data"));
      }
      $("read-tools").hidden = !about.modes.includes("dense");
      $("reader").showModal();
      $("read-text").focus();
      if (begin > 0) passage.scrollIntoView({ block: "center" }); else $("read-text").scrollTop = 0;
    } catch (error) {
      complain(error);
    }
  }

  // Append a text, with the words marked that the snippet marks and that matched.
  function addMarked(text, hit, parent) {
    const marked = hit.snippet.filter(([, isMarked]) => isMarked).map(([word]) => word);
    const words = [...new Set([...marked, ...Object.keys(hit.terms)])].sort((a, b) => b.length - a.length);
    // Scripts without spaces have no word boundaries.
    const spaceless = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}\p{sc=Lao}\p{sc=Khmer}\p{sc=Myanmar}]/u;
    const patterns = words.map((word) => {
      const literal = word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
      return spaceless.test(word) ? literal : `(?<![\\p{L}\\p{N}])${literal}(?![\\p{L}\\p{N}\\p{M}])`;
    });
    let position = 0;
    for (const match of words.length ? text.matchAll(new RegExp(patterns.join("|"), "giu")) : []) {
      parent.append(text.slice(position, match.index));
      make("mark", match[0], parent);
      position = match.index + match[0].length;
    }
    parent.append(text.slice(position));
  }

  // Convert a span in characters to UTF-16 code units.
  function codeUnits(text, span) {
    let units = 0, characters = 0;
    const found = [text.length, text.length];
    for (const one of text) {
      for (const side of [0, 1]) if (characters === span[side]) found[side] = units;
      units += one.length;
      characters += 1;
    }
    return found;
  }

  const selected = () => {
    const chosen = getSelection();
    return chosen.rangeCount && $("read-text").contains(chosen.anchorNode) ? chosen.toString().trim().slice(0, 2000) : "";
  };

  $("close").addEventListener("click", () => $("reader").close());
  $("read-like").addEventListener("click", () => { $("reader").close(); like(opened); });
  $("read-passage").addEventListener("click", () => {
    const passage = selected();
    $("reader").close();
    go({ ...empty(), mode: state.mode, filters: state.filters, passage });
  });
  document.addEventListener("selectionchange", () => { $("read-passage").disabled = selected() === ""; });

  // The address holds the question, so that going back works

  function go(change, keep = false) {
    state = { ...state, ...change };
    const { k, ...kept } = state;
    if (!keep) history.pushState(null, "", `#${encodeURIComponent(JSON.stringify(kept))}`);
    return update();
  }

  function fromAddress() {
    const start = { ...empty(), mode: about.modes[0] };
    try {
      const kept = JSON.parse(decodeURIComponent(location.hash.slice(1)) || "{}");
      return { ...start, ...kept, k: STEP };
    } catch {
      return start;
    }
  }

  $("form").addEventListener("submit", (event) => {
    event.preventDefault();
    go({ ...empty(), filters: state.filters, mode: $("mode").value, q: $("query").value });
  });
  $("mode").addEventListener("change", () => { if (state.q) go({ mode: $("mode").value, k: STEP }); else state.mode = $("mode").value; });
  $("more").addEventListener("click", () => go({ k: Math.min(200, state.k + 2 * STEP) }, true));
  addEventListener("popstate", () => { state = fromAddress(); update(); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || $("reader").open) return;
    const typing = event.target instanceof HTMLInputElement && event.target.type === "search";
    if (event.key === "/" && !typing) { event.preventDefault(); $("query").select(); }
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const heads = [...document.querySelectorAll("#hits h2 button")];
    const at = heads.indexOf(event.target);
    if (step && heads.length && (at >= 0 || (typing && step > 0))) {
      event.preventDefault();
      (heads[at + step] || (at + step < 0 ? $("query") : heads[at])).focus();
    }
  });

  (async () => {
    try {
      about = await ask("about");
    } catch (error) { complain(error); return; }
    $("name").textContent = about.name;
    $("size").textContent = `${about.documents.toLocaleString()} documents`;
    for (const mode of about.modes) make("option", MODES[mode], $("mode")).value = mode;
    $("mode").hidden = about.modes.length < 2;
    if (matchMedia("(max-width: 800px)").matches) $("filters").open = false;
    $("filters").hidden = about.facets.length === 0;
    state = fromAddress();
    $("query").focus();
    await update();
  })();
})();
