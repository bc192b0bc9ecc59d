"use strict";
// Everything that comes from the server is put on the page as text, never as markup.
(() => {
  const $ = (id) => document.getElementById(id);
  const token = new URLSearchParams(location.search).get("token") || "";
  const tab = sessionStorage.getItem("tab") || crypto.randomUUID();
  sessionStorage.setItem("tab", tab);

  let study = null; // codebook and kind
  let current = null; // the text on the page
  const upcoming = []; // texts that come after it, fetched before they are needed
  let fetching = null;
  let chosen = new Set();
  let unsure = false;
  let busy = false;
  let spans = []; // of the text on the page: {label, begin, end}, in UTF-16 units as the page counts
  let cursor = null; // words from and to, where parts are marked by keys

  async function ask(path, content) {
    const options = { headers: { "X-Token": token } };
    if (content !== undefined) {
      options.method = "POST";
      options.headers["Content-Type"] = "application/json";
      options.body = JSON.stringify(content);
    }
    let response;
    try {
      response = await fetch(path, options);
    } catch {
      throw new Error("The server does not answer. Your input is kept: restart the server, then press the key again.");
    }
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error || "The server refused the request.");
    return answer;
  }

  const make = (name, text, parent) => {
    const element = document.createElement(name);
    if (text) element.textContent = text;
    if (parent) parent.append(element);
    return element;
  };
  const isMany = () => study.kind === "several" || study.kind === "spans";
  const percent = (value) => `${(100 * value).toFixed(value < 0.1 ? 1 : 0)} %`;
  const say = (text) => { $("said").textContent = text; };
  const complain = (error) => { $("message").textContent = error.message || String(error); };

  // The codebook, and a button for each label

  function drawLabels() {
    $("labels").replaceChildren();
    $("book").replaceChildren();
    for (const label of study.labels) {
      const button = make("button", "", $("labels"));
      button.type = "button";
      make("kbd", label.key, button);
      make("span", label.name, button);
      button.addEventListener("click", () => choose(label));
      if (isMany()) button.setAttribute("aria-pressed", "false");
      label.button = button;
      const term = make("dt", "", $("book"));
      make("kbd", label.key, term);
      make("span", label.name, term);
      if (label.definition) make("dd", label.definition, $("book"));
      for (const example of label.examples) make("dd", `“${example}”`, $("book"));
    }
    $("confirm").hidden = !isMany();
    if (study.pairs) $("text-title").textContent = "Two texts";
    $("span-help").hidden = study.kind !== "spans";
    if (study.is_sheet) {
      document.querySelector("h1").textContent = "Questions on topics";
      $("text-title").textContent = "Question";
      document.querySelector("main").style.display = "block";
      document.querySelector("aside").hidden = $("hint").hidden = $("stream").hidden = true;
    }
    $("who").textContent = `by ${study.annotator}`;
  }

  function drawStatus(status) {
    const p = status.progress;
    $("counts").textContent = study.is_sheet ? `${p.labelled} of ${p.texts} answered` :
      `${p.labelled.toLocaleString()} of ${p.texts.toLocaleString()} labelled · picked ${p.teach} · random ${p.count} · kept for testing ${p.test}`;
    const found = status.estimates;
    if (!found || !found.classes) {
      const left = Math.max(0, 10 - p.sample);
      $("quality").textContent = left
        ? `Quality and shares appear after ${left} more count texts.`
        : "Quality and shares are being estimated.";
      return;
    }
    const [value, low, high] = found.accuracy;
    $("quality").textContent =
      `Accuracy of the model on ${found.n} held-out count texts: ${percent(value)} (95 %: ${percent(low)} to ${percent(high)}).`;
    drawShares(found.classes);
    const widest = [...found.classes].sort((a, b) => (b.high - b.low) - (a.high - a.low))[0];
    const lines = [];
    if (widest.width_after !== null) {
      const width = (w) => (100 * w).toFixed(1);
      lines.push(`${widest.further} more count texts would narrow the interval of ${widest.name} from ${width(widest.high - widest.low)} to about ${width(widest.width_after)} points.`);
    }
    const least = [...found.classes].sort((a, b) => a.recall_bound - b.recall_bound)[0];
    lines.push(`At least ${percent(least.recall_bound)} of all ${least.name} texts are labelled.`);
    $("advice").textContent = lines.join(" ");
  }

  function drawShares(classes) {
    const svg = "http://www.w3.org/2000/svg";
    $("shares").replaceChildren();
    for (const one of classes) {
      const box = make("div", "", $("shares"));
      box.className = "share";
      const line = make("p", "", box);
      make("span", one.name, line);
      make("span", `${percent(one.share)} (${percent(one.low)} to ${percent(one.high)})`, line);
      const picture = document.createElementNS(svg, "svg");
      picture.setAttribute("viewBox", "0 0 100 10");
      picture.setAttribute("preserveAspectRatio", "none");
      picture.setAttribute("aria-hidden", "true");
      const parts = [["track", 0, 100, 4, 2], ["range", 100 * one.low, 100 * (one.high - one.low), 2, 6], ["point", 100 * one.share - 0.4, 0.8, 0, 10]];
      for (const [kind, x, width, y, height] of parts) {
        const part = document.createElementNS(svg, "rect");
        part.setAttribute("class", kind);
        for (const [name, value] of Object.entries({ x, y, width, height })) part.setAttribute(name, value);
        picture.append(part);
      }
      box.append(picture);
    }
  }

  // The text

  const fetchNext = (fresh = false) => ask("api/next", { tab, fresh }).then((answer) => answer.next);

  function prefetch() {
    fetching ??= fetchNext()
      .then((text) => { if (text !== null) upcoming.push(text); })
      .finally(() => { fetching = null; });
    return fetching;
  }

  const prefetchQuietly = () => { if (!upcoming.length) prefetch().catch(() => {}); }; // asked again when needed

  // Buttons show the options of a question, which end its text.
  function asQuestion(text) {
    const cut = text.text.lastIndexOf("\n\n");
    const options = text.text.slice(cut + 2).split("\n").map((line) => line.replace(/^\d+\. /, ""));
    study.labels.forEach(({ button }, i) => {
      button.hidden = i >= options.length;
      button.lastChild.textContent = options[i] ?? "";
    });
    return { ...text, text: text.text.slice(0, cut) };
  }

  function show(text) {
    current = study.is_sheet && text ? asQuestion(text) : text;
    chosen = new Set();
    setUnsure(false);
    $("note").value = "";
    openNote(false);
    for (const label of study.labels) if (isMany()) label.button.setAttribute("aria-pressed", "false");
    spans = [];
    cursor = null;
    $("hinted").textContent = "";
    $("hint").setAttribute("aria-pressed", "false");
    const isDone = text === null;
    $("text").classList.toggle("done", isDone);
    if (isDone) $("text").textContent = "No texts are left. All labels are on disk.";
    else paint();
    $("text").scrollTop = 0;
    $("stream").hidden = isDone || study.is_sheet;
    const streams = { count: "count: drawn at random", teach: "teach: picked for the model" };
    $("stream").textContent = isDone ? "" : streams[text.stream] ?? text.stream;
    $("row-id").textContent = isDone ? "" : text.id;
    for (const button of document.querySelectorAll("#labels button, #skip, #confirm, #hint")) button.disabled = isDone;
    say(isDone ? "No texts are left." : `Next text: ${text.text.slice(0, 2000)}`);
  }

  async function advance() {
    if (!upcoming.length && fetching) await fetching.catch(() => {});
    if (!upcoming.length) await prefetch();
    show(upcoming.shift() ?? null);
    if (current !== null) prefetchQuietly();
  }

  async function once(work) {
    if (busy) return;
    busy = true;
    try {
      await work();
      $("message").textContent = "";
    } catch (error) {
      complain(error);
    } finally {
      busy = false;
    }
  }

  async function inTurn(work) {
    // What is looked up waits for an answer under way; only a second answer is dropped.
    while (busy) await new Promise((done) => { setTimeout(done, 20); });
    await once(work);
  }

  // Answers

  function choose(label) {
    if (current === null) return;
    if (study.kind === "spans") { markSpan(label); return; }
    if (study.kind !== "several") { answer([label.name]); return; }
    if (!chosen.delete(label.name)) {
      chosen.add(label.name);
    }
    for (const one of study.labels) one.button.setAttribute("aria-pressed", String(chosen.has(one.name)));
  }

  const answer = (labels) => once(async () => {
    if (current === null) return;
    const inCharacters = (place) => [...current.text.slice(0, place)].length;
    const marked = spans.map((one) => [one.label, inCharacters(one.begin), inCharacters(one.end)]);
    const status = await ask("api/label", { key: current.key, labels, spans: marked, unsure, note: $("note").value, stream: current.stream });
    drawStatus(status);
    await advance();
  });

  const skip = () => once(async () => {
    if (current === null) return;
    drawStatus(await ask("api/skip", { key: current.key, note: $("note").value }));
    await advance();
  });

  const undo = () => once(async () => {
    const status = await ask("api/undo", { tab });
    drawStatus(status);
    if (status.next === null) { say("Nothing to undo."); return; }
    if (current !== null) upcoming.unshift(current); // it comes after the one that is back
    show(status.next);
  });

  function setUnsure(on) {
    unsure = on;
    $("unsure").setAttribute("aria-pressed", String(on));
  }

  function openNote(on) {
    $("note-box").hidden = !on;
    $("note-open").setAttribute("aria-expanded", String(on));
    if (on) $("note").focus();
  }

  // Parts of a text

  function paint() {
    // Marked parts and the cursor, cut at each edge; everything is text.
    const text = current.text;
    const parts = spans.map((one) => ({ ...one, kind: "span" }));
    if (cursor) parts.push({ ...wordsAt(cursor), kind: "cursor" });
    const middle = study.pairs ? text.indexOf("\n\n") : -1;
    if (middle >= 0) parts.push({ begin: middle, end: middle + 2, kind: "between" });
    const edges = [...new Set([0, text.length, ...parts.flatMap((one) => [one.begin, one.end])])].sort((a, b) => a - b);
    $("text").replaceChildren();
    edges.slice(0, -1).forEach((begin, i) => {
      const end = edges[i + 1];
      const over = parts.filter((one) => one.begin <= begin && end <= one.end);
      if (!over.length) { $("text").append(text.slice(begin, end)); return; }
      const mark = make("mark", text.slice(begin, end), $("text"));
      for (const one of over) mark.classList.add(one.kind);
      const span = over.find((one) => one.kind === "span");
      if (!span) return;
      if (span.end === end) mark.dataset.label = span.label;
      mark.title = `${span.label}: click to remove it`;
      mark.addEventListener("click", () => removeSpan(span));
    });
  }

  const words = () => [...current.text.matchAll(/[\p{L}\p{N}]+|[^\s\p{L}\p{N}]/gu)];
  function wordsAt({ from, to }) {
    const all = words();
    const [first, last] = [all[Math.min(from, to)], all[Math.max(from, to)]];
    return { begin: first.index, end: last.index + last[0].length };
  }

  function selected() {
    const selection = getSelection();
    if (!selection.rangeCount || selection.isCollapsed) return null;
    const range = selection.getRangeAt(0);
    if (!$("text").contains(range.commonAncestorContainer)) return null;
    const before = document.createRange();
    before.selectNodeContents($("text"));
    before.setEnd(range.startContainer, range.startOffset);
    const begin = before.toString().length;
    const inside = range.toString();
    return { begin: begin + inside.length - inside.trimStart().length, end: begin + inside.trimEnd().length };
  }

  function markSpan(label) {
    const part = selected() ?? (cursor && wordsAt(cursor));
    if (!part || part.begin >= part.end) { say("Mark a part of the text first."); complain(new Error("Mark a part of the text first.")); return; }
    spans = spans.filter((one) => one.end <= part.begin || part.end <= one.begin);
    spans.push({ ...part, label: label.name });
    spans.sort((a, b) => a.begin - b.begin);
    getSelection().removeAllRanges();
    $("message").textContent = "";
    say(`${label.name}: ${current.text.slice(part.begin, part.end)}`);
    paint();
  }

  function removeSpan(span) {
    spans = spans.filter((one) => one.begin !== span.begin);
    say(`Removed: ${current.text.slice(span.begin, span.end)}`);
    paint();
  }

  function moveCursor(step, extend) {
    if (current === null) return;
    const last = words().length - 1;
    if (last < 0) return;
    const to = cursor ? Math.min(last, Math.max(0, cursor.to + step)) : step > 0 ? 0 : last;
    cursor = { from: extend && cursor ? cursor.from : to, to };
    paint();
    const { begin, end } = wordsAt(cursor);
    say(current.text.slice(begin, end));
    document.querySelector("#text .cursor")?.scrollIntoView({ block: "nearest" });
  }

  const showHint = () => inTurn(async () => {
    if (current === null) return;
    const on = $("hint").getAttribute("aria-pressed") !== "true";
    const key = current.key;
    const found = on ? await ask("api/hint", { key }) : {};
    if (current === null || current.key !== key) return;
    $("hint").setAttribute("aria-pressed", String(on));
    $("hinted").textContent = !on ? "" : found.label === null ? "The model is not fitted yet."
      : `${found.label}, with probability ${percent(found.probability)}.`;
  });

  // Search

  function list(found, summary) {
    $("found").replaceChildren();
    $("n-found").textContent = summary;
    $("queue").hidden = !found.some((one) => one.labels === null);
    $("queue").onclick = () => once(async () => {
      await ask("api/queue", { keys: found.filter((one) => one.labels === null).map((one) => one.key) });
      $("n-found").textContent = "These come next.";
      prefetchQuietly();
    });
    for (const one of found) {
      const button = make("button", "", make("li", "", $("found")));
      button.type = "button";
      const said = one.labels === null ? "" : one.labels.join(", ") || "no label";
      if (said || one.unsure || one.note) make("em", [said, one.unsure ? "unsure" : "", one.note].filter(Boolean).join(" · "), button);
      make("span", one.text || one.id, button);
      button.addEventListener("click", () => once(async () => {
        if (fetching) await fetching.catch(() => {});
        if (current !== null && current.key === one.key) return;
        const place = upcoming.findIndex((text) => text.key === one.key);
        let text = place < 0 ? null : upcoming.splice(place, 1)[0];
        if (text === null) {
          await ask("api/queue", { keys: [one.key] });
          text = await fetchNext();
        }
        if (current !== null) upcoming.unshift(current); // it comes after the one that was asked for
        show(text);
        $("text").focus();
      }));
    }
  }

  $("find").addEventListener("submit", (event) => {
    event.preventDefault();
    inTurn(async () => {
      const { found, n } = await ask("api/search", { query: $("query").value });
      list(found, n ? `${n.toLocaleString()} ${n === 1 ? "text" : "texts"}${n > found.length ? `, the first ${found.length} below` : ""}` : "No text contains these words.");
    });
  });
  $("noted").addEventListener("click", () => inTurn(async () => {
    const { found } = await ask("api/noted");
    list(found, found.length ? "" : "None.");
  }));
  $("hint").addEventListener("click", showHint);

  $("confirm").addEventListener("click", () => answer([...chosen]));
  $("skip").addEventListener("click", skip);
  $("undo").addEventListener("click", undo);
  $("unsure").addEventListener("click", () => setUnsure(!unsure));
  $("note-open").addEventListener("click", () => openNote($("note-box").hidden));

  document.addEventListener("keydown", (event) => {
    if (!study || event.ctrlKey || event.metaKey || event.altKey || event.repeat || event.isComposing) return;
    if (event.target === $("note") || event.target === $("query")) {
      if (event.key === "Escape") { event.target.blur(); event.preventDefault(); }
      return;
    }
    if (!$("keys").checked) return;
    const label = study.labels.find((one) => one.key === event.key.toLowerCase());
    const actions = {
      ArrowLeft: undo, ArrowRight: skip, "?": () => setUnsure(!unsure), "/": () => openNote(true),
      ".": showHint,
    };
    if (study.kind === "spans") {
      Object.assign(actions, {
        ArrowUp: () => moveCursor(-1, event.shiftKey), ArrowDown: () => moveCursor(1, event.shiftKey),
        Backspace: () => { if (spans.length) removeSpan(spans[spans.length - 1]); },
      });
    }
    const onButton = event.target instanceof HTMLButtonElement;
    if (isMany() && !onButton) actions.Enter = () => answer([...chosen]);
    const action = label ? () => choose(label) : actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  once(async () => {
    study = await ask("api/state");
    drawLabels();
    drawStatus(study);
    show(await fetchNext(true));
    if (current !== null) prefetchQuietly();
    // Estimates are made in the background.
    setInterval(() => { if (!busy) ask("api/state").then(drawStatus, () => {}); }, 3000);
  });
})();
