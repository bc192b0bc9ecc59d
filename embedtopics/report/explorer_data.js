"use strict";
// What the page holds: columns, texts that are inflated when they are looked at, and the index.
const Store = (() => {
  const about = JSON.parse(document.getElementById("about").textContent);
  const TEXTS_PER_BLOCK = 1000;
  const LINES_PER_BLOCK = 20000;
  const KEPT_BLOCKS = 60;
  const Z_OF_95 = 1.959963984540054;

  const inflated = async (name) => {
    const element = document.getElementById(`packed-${name}`);
    if (!element) return null;
    const bytes = Scatter.unpack(element.textContent, Uint8Array);
    if (!("deflated" in element.dataset)) return bytes;
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  };
  const column = async (name, Kind) => {
    const bytes = await inflated(name);
    return bytes && new Kind(bytes.buffer);
  };
  const strings = async (name) => {
    const bytes = await inflated(name);
    return bytes ? new TextDecoder().decode(bytes).split("\0") : [];
  };

  // Blocks by their names, of which the last ones used are kept.
  const blocks = new Map();
  const block = (name, read) => {
    const found = blocks.get(name) ?? read(name);
    blocks.delete(name);
    blocks.set(name, found);
    if (blocks.size > KEPT_BLOCKS) blocks.delete(blocks.keys().next().value);
    return found;
  };

  const store = { about, n: about.rows, nDocuments: about.documents, index: null };

  // What the first picture needs.
  store.load = async () => {
    const [repeats, rows, times, groups, wholes] = await Promise.all([
      column("repeats", Uint32Array), column("rows", Uint32Array), column("times", Int32Array),
      column("groups", Uint32Array), column("wholes", Uint32Array),
    ]);
    const all = (name, Kind) => Promise.all(about.panels.map((_, i) => column(`${name}-${i}`, Kind)));
    const places = await all("places", Uint16Array);
    const labels = await column("labels", Uint16Array); // by document, 0 for none
    store.neighbors = await all("neighbors", Uint32Array);
    const { n, nDocuments } = store;
    store.rowNumber = (row) => (rows ? rows[row] : row);
    store.times = times;
    store.groups = groups;
    store.wholes = wholes; // the text of each passage
    store.firstRow = new Uint32Array(nDocuments);
    store.documentOf = new Uint32Array(n);
    store.repeats = new Uint32Array(nDocuments);
    store.topicOf = new Uint16Array(n);
    store.places = repeats ? places.map(() => new Uint16Array(2 * n)) : places;
    for (let row = 0, next = 0; row < n; row += 1) {
      const isNew = !repeats || !repeats[row];
      const document = isNew ? next : store.documentOf[row - repeats[row]];
      if (isNew) {
        store.firstRow[next] = row;
        next += 1;
      }
      store.documentOf[row] = document;
      store.repeats[document] += 1;
      store.topicOf[row] = labels[document];
      if (repeats) {
        store.places.forEach((of, i) => {
          of[2 * row] = places[i][2 * document];
          of[2 * row + 1] = places[i][2 * document + 1];
        });
      }
    }
  };

  // The first rows of a row's nearest documents on a map, where these are known.
  store.near = (panel, row) => {
    const { depth } = about.panels[panel];
    const at = store.documentOf[row] * depth;
    return depth ? [...store.neighbors[panel].subarray(at, at + depth)]
      .filter((document) => document < store.nDocuments).map((document) => store.firstRow[document]) : [];
  };

  const line = async (name, position, perBlock = LINES_PER_BLOCK) => {
    const lines = await block(`${name}-${Math.floor(position / perBlock)}`, strings);
    return lines[position % perBlock];
  };
  store.text = async (row) => (about.hasTexts ? line("texts", store.documentOf[row], TEXTS_PER_BLOCK) : "");
  store.id = async (row) => (about.hasIds ? line("ids", row) : String(store.rowNumber(row)));
  store.url = async (row) => (about.columns.url ? line("urls", row) : "");

  // ---- the index: terms in the order of strings, and in which documents each stands how often

  let indexing = null;
  store.loadIndex = () => {
    indexing ??= (async () => {
      const [terms, lengths, starts, steps, occurrences, nWords] = await Promise.all([
        strings("terms-0"), column("lengths", Uint8Array), column("starts", Uint32Array),
        column("steps", Uint32Array), column("occurrences", Uint16Array), column("n-words", Uint32Array),
      ]);
      if (!steps) return null;
      const ignored = new Set(about.notIndexed);
      store.index = { terms, lengths, starts, steps, occurrences, nWords, ignored };
      return store.index;
    })();
    return indexing;
  };

  // Call visit(document, occurrences) for each document that holds a term.
  const each = ({ starts, steps, occurrences }, term, visit) => {
    let document = -1;
    for (let at = starts[term]; at < starts[term + 1]; at += 1) {
      document += steps[at];
      visit(document, occurrences[at]);
    }
  };

  // Place of the first term that is not before a string.
  const lowerBound = (terms, text) => {
    let [low, high] = [0, terms.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (terms[middle] < text) low = middle + 1;
      else high = middle;
    }
    return low;
  };

  // Terms that a piece of a query stands for: itself where it is quoted, else all that begin with
  // it; where none does, as in languages that put no spaces, all that hold it.
  const matching = ({ terms }, { text, exact }) => {
    const found = [];
    const first = lowerBound(terms, text);
    if (exact) return terms[first] === text ? [first] : [];
    for (let at = first; at < terms.length && terms[at].startsWith(text); at += 1) {
      if (!terms[at].includes(" ")) found.push(at);
    }
    if (!found.length && text.length > 1) {
      for (let at = 0; at < terms.length; at += 1) {
        if (terms[at].includes(text) && !terms[at].includes(" ")) found.push(at);
      }
    }
    return found;
  };

  // A query's pieces: words, and what stands in quotes.
  store.pieces = (query) => {
    const pieces = [];
    const clean = query.normalize("NFC").toLowerCase();
    for (const [, quoted, plain] of clean.matchAll(/"([^"]*)"?|([^\s"]+)/g)) {
      if (quoted !== undefined) {
        const text = quoted.trim().replace(/\s+/g, " ");
        if (text) pieces.push({ text, exact: true });
        continue;
      }
      const text = plain.replace(/^[^\p{L}\p{N}\p{M}]+|[^\p{L}\p{N}\p{M}]+$/gu, "");
      if (text) pieces.push({ text, exact: false });
    }
    return pieces;
  };

  // Which documents hold all words of a query, and the words that were not looked for.
  store.search = (query) => {
    const held = new Uint8Array(store.nDocuments);
    const skipped = [];
    let n = 0;
    const ask = ({ text, exact }) => {
      const found = matching(store.index, { text, exact });
      if (!found.length && store.index.ignored.has(text)) {
        skipped.push(text);
        return;
      }
      if (!found.length) {
        const parts = text.split(/[^\p{L}\p{N}\p{M}]+/u).filter(Boolean);
        if (parts.length > 1) {
          parts.forEach((part) => ask({ text: part, exact }));
          return;
        }
      }
      n += 1;
      for (const term of found) {
        each(store.index, term, (document) => {
          if (held[document] === n - 1) held[document] = n;
        });
      }
    };
    store.pieces(query).forEach(ask);
    if (n) for (let i = 0; i < held.length; i += 1) held[i] = held[i] === n ? 1 : 0;
    else held.fill(1);
    return { held, skipped };
  };

  // ---- the words that set rows apart: as embedtopics.topics.keyness has them

  const placesFor = ({ nWords }, weights, longest) => {
    const places = new Float64Array(longest + 1);
    for (let document = 0; document < nWords.length; document += 1) {
      const weight = weights[document];
      if (!weight) continue;
      for (let k = 0; k < longest; k += 1) {
        places[k + 1] += weight * Math.max(nWords[document] - k, 0);
      }
    }
    return places;
  };

  const countTerms = (index, weights) => {
    const counts = new Float64Array(index.terms.length);
    for (let term = 0; term < counts.length; term += 1) {
      if (!index.lengths[term]) continue;
      let sum = 0;
      each(index, term, (document, occurrences) => { sum += weights[document] * occurrences; });
      counts[term] = sum;
    }
    return counts;
  };

  const everywhere = (index) => {
    index.longest ??= index.lengths.reduce((most, length) => Math.max(most, length), 1);
    index.totals ??= countTerms(index, store.repeats);
    index.places ??= placesFor(index, store.repeats, index.longest);
  };

  const FEW = 5;
  const timesLogRatio = (x, y) => (x > 0 ? x * Math.log(x / y) : 0);

  // A side avoids a term that occurs on it fewer than FEW times, although FEW of its rows or more
  // should hold it. The prior of the log-odds hides that; the likelihood ratio of the rows shows it
  // (Dunning 1993). Returns its signed root, or the given z if that is larger.
  const withAvoidance = (index, term, z, counts, sides, nRows) => {
    if (Math.min(...counts) >= FEW) return z;
    const rows = [0, 0];
    each(index, term, (document) => sides.forEach((weights, side) => { rows[side] += weights[document]; }));
    const share = (rows[0] + rows[1]) / (nRows[0] + nRows[1]);
    const less = rows[0] / nRows[0] < rows[1] / nRows[1] ? 0 : 1;
    const sign = less === 0 ? -1 : 1;
    if (counts[less] >= FEW || share * nRows[less] < FEW || sign * z < 0) return z;
    const ratio = [0, 1].reduce((sum, side) => sum
      + timesLogRatio(rows[side], nRows[side] * share)
      + timesLogRatio(nRows[side] - rows[side], nRows[side] * (1 - share)), 0);
    return sign * Math.max(Math.sqrt(Math.max(2 * ratio, 0)), Math.abs(z));
  };

  // Log-odds under an informative Dirichlet prior of as many words as the smaller side has (Monroe,
  // Colaresi and Quinn 2008, equations 16 to 22), with 95 % intervals. Both are weights of documents;
  // without a reference, it is the rest.
  store.keyness = (target, other = null) => {
    const { index } = store;
    everywhere(index);
    const { terms, lengths, totals, longest, places } = index;
    const counts = [countTerms(index, target), null];
    counts[1] = other ? countTerms(index, other) : totals.map((sum, i) => sum - counts[0][i]);
    const reference = other ?? store.repeats.map((repeats, i) => repeats - target[i]);
    const sides = [target, reference];
    const sizes = sides.map((weights) => placesFor(index, weights, longest));
    const nRows = sides.map((weights) => weights.reduce((sum, weight) => sum + weight, 0));
    const found = [];
    for (let length = 1; length <= longest; length += 1) {
      const n = sizes.map((of) => of[length]);
      if (!n[0] || !n[1]) continue;
      const tested = [];
      const sums = [0, 0];
      let shares = 0;
      for (let term = 0; term < terms.length; term += 1) {
        if (lengths[term] !== length) continue;
        if (counts[0][term] + counts[1][term] < about.minCount) continue;
        tested.push(term);
        sums[0] += counts[0][term];
        sums[1] += counts[1][term];
        shares += totals[term] / Math.max(places[length], 1);
      }
      const weight = Math.min(...n) / (shares + Math.max(1 - shares, 0));
      const all = [0, 1].map((side) =>
        sums[side] + Math.max(n[side] - sums[side], 0) + Math.min(...n));
      for (const term of tested) {
        const prior = weight * totals[term] / Math.max(places[length], 1);
        const [one, other] = [counts[0][term] + prior, counts[1][term] + prior];
        if (!(one > 0 && other > 0 && all[0] > one && all[1] > other)) continue;
        const effect = Math.log(one / (all[0] - one)) - Math.log(other / (all[1] - other));
        const error = Math.sqrt(1 / one + 1 / other);
        const ofSides = [counts[0][term], counts[1][term]];
        found.push({
          term: terms[term], effect, low: effect - Z_OF_95 * error, high: effect + Z_OF_95 * error,
          z: withAvoidance(index, term, effect / error, ofSides, sides, nRows), counts: ofSides,
        });
      }
    }
    return found.sort((a, b) => b.z - a.z);
  };

  return store;
})();
