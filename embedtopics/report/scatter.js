"use strict";
// Drawing and finding points. A map of 20,000 points is some half a million pixels to blend: less
// work done here, at once, than to hand each point to the canvas, and the same on every machine.
const Scatter = (() => {
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

  return { unpack, channels, disc, nearest, next, inside };
})();
