"use strict";
// Drawing and finding points. A map of 20,000 points is some half a million pixels to blend: less
// work done here, at once, than to hand each point to the canvas, and the same on every machine.
const Scatter = (() => {
  const FADED = 0.2; // share of its colour that is left to a faded point

  const unpack = (text, Kind) => {
    if (Uint8Array.fromBase64) return new Kind(Uint8Array.fromBase64(text).buffer);
    const characters = atob(text);
    const bytes = new Uint8Array(characters.length);
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = characters.charCodeAt(i);
    return new Kind(bytes.buffer);
  };

  const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));

  // A disc as offsets and the share (of 256) of each pixel that it covers, for points whose
  // centre lies at each quarter of a pixel.
  const disc = (radius, opacity) => {
    const stencils = [];
    const reach = Math.ceil(radius + 1);
    for (let place = 0; place < 16; place += 1) {
      const stencil = [];
      const [right, down] = [((place & 3) + 0.5) / 4, ((place >> 2) + 0.5) / 4];
      for (let dy = -reach; dy <= reach; dy += 1) {
        for (let dx = -reach; dx <= reach; dx += 1) {
          const away = Math.hypot(dx + 0.5 - right, dy + 0.5 - down);
          const share = Math.round(256 * opacity * Math.min(Math.max(radius + 0.5 - away, 0), 1));
          if (share > 0) stencil.push(dx, dy, share);
        }
      }
      stencils.push(stencil);
    }
    return { stencils, reach };
  };

  const blend = (image, stencil, left, top, [red, green, blue]) => {
    const { data, width } = image;
    for (let at = 0; at < stencil.length; at += 3) {
      const pixel = 4 * ((top + stencil[at + 1]) * width + left + stencil[at]);
      const share = stencil[at + 2];
      data[pixel] += ((red - data[pixel]) * share) >> 8;
      data[pixel + 1] += ((green - data[pixel + 1]) * share) >> 8;
      data[pixel + 2] += ((blue - data[pixel + 2]) * share) >> 8;
    }
  };

  // Draw all points: those of no group below the others, and, where there is a selection, what is
  // not in it pale and below everything. `look` gives the group, or -1 for what is hidden.
  const paint = (canvas, points, look, selected, colors, radius) => {
    const context = canvas.getContext("2d", { willReadFrequently: true });
    const image = context.createImageData(canvas.width, canvas.height);
    new Uint32Array(image.data.buffer).fill(0xffffffff);
    const full = disc(radius, 0.8);
    const small = disc(0.8 * radius, 0.7);
    const pale = disc(0.8 * radius, 1);
    const shades = colors.map(channels);
    // mixed with white beforehand: many that let each other shine through would not be pale
    const paleShades = shades.map((shade, group) =>
      shade.map((channel) => (group ? FADED * channel + (1 - FADED) * 255 : 233)));
    // beside faded points, the grey of those in no group would look faded too
    if (selected !== null) shades[0] = channels("#8a93a0");
    for (let pass = 0; pass < 3; pass += 1) {
      for (let i = 0; i < look.length; i += 1) {
        const group = look[i];
        if (group < 0) continue;
        const faded = selected !== null && !selected[i];
        if ((faded ? 0 : group === 0 && selected === null ? 1 : 2) !== pass) continue;
        const kind = faded ? pale : group === 0 && selected === null ? small : full;
        const [x, y] = [points[2 * i], points[2 * i + 1]];
        const [left, top] = [Math.floor(x), Math.floor(y)];
        if (left < kind.reach || top < kind.reach || left >= canvas.width - kind.reach ||
            top >= canvas.height - kind.reach) continue;
        const stencil = kind.stencils[((x - left) * 4 | 0) + 4 * ((y - top) * 4 | 0)];
        blend(image, stencil, left, top, faded ? paleShades[group] : shades[group]);
      }
    }
    context.putImageData(image, 0, 0);
  };

  // The shown point nearest to a place, or -1 where none is within reach.
  const nearest = (points, look, x, y, reach) => {
    let [best, least] = [-1, reach * reach];
    for (let i = 0; i < look.length; i += 1) {
      if (look[i] < 0) continue;
      const [dx, dy] = [points[2 * i] - x, points[2 * i + 1] - y];
      const away = dx * dx + dy * dy;
      if (away <= least) [best, least] = [i, away];
    }
    return best;
  };

  // The shown point that lies next in a direction: what lies aside counts double.
  const next = (points, look, from, [right, down]) => {
    let [best, least] = [-1, Infinity];
    for (let i = 0; i < look.length; i += 1) {
      if (look[i] < 0 || i === from) continue;
      const [dx, dy] = [points[2 * i] - points[2 * from], points[2 * i + 1] - points[2 * from + 1]];
      const [ahead, aside] = [dx * right + dy * down, Math.abs(dx * down - dy * right)];
      if (ahead > 0 && ahead >= aside && ahead + 2 * aside < least) {
        [best, least] = [i, ahead + 2 * aside];
      }
    }
    return best;
  };

  // Which shown points lie inside a closed line: those from which a ray crosses it an odd number
  // of times. `line` holds x and y in turn.
  const inside = (points, look, line) => {
    const found = new Uint8Array(look.length);
    const n = line.length;
    for (let i = 0; i < look.length; i += 1) {
      if (look[i] < 0) continue;
      const [x, y] = [points[2 * i], points[2 * i + 1]];
      let within = 0;
      for (let a = 0, b = n - 2; a < n; b = a, a += 2) {
        if ((line[a + 1] > y) !== (line[b + 1] > y) &&
            x < line[a] + (line[b] - line[a]) * (y - line[a + 1]) / (line[b + 1] - line[a + 1])) {
          within ^= 1;
        }
      }
      found[i] = within;
    }
    return found;
  };

  const ring = (context, x, y, radius, color, width) => {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.lineWidth = width + 2.5;
    context.strokeStyle = "#fff";
    context.stroke();
    context.lineWidth = width;
    context.strokeStyle = color;
    context.stroke();
  };

  // Names where their groups are densest, the largest first; one that would cover another is left.
  const drawNames = (context, map, data, hidden) => {
    const taken = [];
    context.font = "650 12px system-ui, -apple-system, 'Segoe UI', Roboto, Arial, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.lineJoin = "round";
    for (const group of data.largest) {
      const anchor = map.encoder.anchors[group - 1];
      if (taken.length >= 8) break;
      if (!anchor || hidden.has(group)) continue;
      const whole = data.names[group];
      const name = whole.length > 26 ? `${whole.slice(0, 25)}…` : whole;
      const half = context.measureText(name).width / 2 + 3;
      const [width, height] = [map.base.width / map.ratio, map.base.height / map.ratio];
      const y = (map.origin[1] - anchor[1] * map.scale) / map.ratio;
      let x = (map.origin[0] + anchor[0] * map.scale) / map.ratio;
      if (x < 0 || x > width || y < 8 || y > height - 8) continue;
      x = Math.min(Math.max(x, half), width - half);
      if (taken.some(([a, b, h]) => Math.abs(a - x) < h + half && Math.abs(b - y) < 17)) continue;
      taken.push([x, y, half]);
      context.lineWidth = 4;
      context.strokeStyle = "rgba(255,255,255,0.9)";
      context.strokeText(name, x, y);
      context.fillStyle = data.inks[group];
      context.fillText(name, x, y);
    }
  };

  // What lies over the points: names, or the document pointed at with its neighbours, and the line
  // that is being drawn.
  const drawOver = (map, data, state, neighborsOf) => {
    const context = map.top.getContext("2d");
    const { ratio, points } = map;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, map.top.width, map.top.height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const at = (i) => [points[2 * i] / ratio, points[2 * i + 1] / ratio];
    if (state.over < 0 && state.kept < 0) drawNames(context, map, data, state.hidden);
    for (const shown of new Set([state.kept, state.over])) {
      if (shown < 0) continue;
      const [x, y] = at(shown);
      const near = [...neighborsOf(map, shown)].filter((j) => state.look[j] >= 0).map(at);
      context.beginPath();
      for (const end of near) { context.moveTo(x, y); context.lineTo(...end); }
      context.lineWidth = 1;
      context.strokeStyle = "rgba(27,36,48,0.35)";
      context.stroke();
      for (const end of near) ring(context, ...end, 3.5, "#1b2430", 1.25);
      context.beginPath();
      context.arc(x, y, 6, 0, 2 * Math.PI);
      context.fillStyle = data.colors[data.groupOf[shown]];
      context.fill();
      ring(context, x, y, 7, "#1b2430", 2.25);
    }
    if (state.line && state.line.map === map) {
      context.beginPath();
      for (let i = 0; i < state.line.points.length; i += 2) {
        context.lineTo(state.line.points[i] / ratio, state.line.points[i + 1] / ratio);
      }
      context.closePath();
      context.fillStyle = "rgba(27,36,48,0.07)";
      context.fill();
      context.setLineDash([5, 4]);
      context.lineWidth = 1.5;
      context.strokeStyle = "#1b2430";
      context.stroke();
      context.setLineDash([]);
    }
  };

  return { unpack, channels, disc, blend, paint, drawOver, nearest, next, inside };
})();
