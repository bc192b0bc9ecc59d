"use strict";
// The map: points by WebGL 2 or on the CPU, density below them, names and outlines above them.
const Atlas = (() => {
  const SWIFT = 28; // milliseconds in which a frame is drawn while the map moves
  const CELLS = 192;
  const DENSEST = 69; // opacity, of 255
  const OFFSETS = [[0, 0], [0, -1], [0, 1], [0.6, 0], [-0.6, 0]];

  const VERTEX = `#version 300 es
    in vec2 place; in vec4 ink; uniform vec4 view; uniform float size; out vec4 color;
    void main() {
      gl_Position = vec4(place * view.xy + view.zw, 0.0, 1.0);
      gl_PointSize = size; color = ink;
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float; in vec4 color; uniform float size; out vec4 seen;
    void main() {
      float away = length(gl_PointCoord - 0.5) * size;
      float share = color.a * clamp(0.5 * size - away, 0.0, 1.0);
      seen = vec4(color.rgb * share, share);
    }`;

  // Points on a graphics card, or null where WebGL 2 is missing.
  const onCard = (canvas, places, asked) => {
    const gl = canvas.getContext("webgl2", { antialias: false, premultipliedAlpha: true });
    if (!gl) return null;
    // Software that plays a graphics card is slower than the painter below.
    const card = gl.getParameter(gl.getExtension("WEBGL_debug_renderer_info")
      ?.UNMASKED_RENDERER_WEBGL ?? gl.RENDERER);
    if (/swiftshader|llvmpipe|software|basic render/i.test(card) && !asked.has("gl")) return null;
    const program = gl.createProgram();
    for (const [kind, source] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, source);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
    gl.useProgram(program);
    const at = (name) => gl.getUniformLocation(program, name);
    const [view, size] = [at("view"), at("size")];
    const attribute = (name, width, kind, normalized) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      const place = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(place);
      gl.vertexAttribPointer(place, width, kind, normalized, 0, 0);
    };
    attribute("place", 2, gl.UNSIGNED_SHORT, false);
    gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
    attribute("ink", 4, gl.UNSIGNED_BYTE, true); // stays bound: inks change
    gl.bindBuffer(gl.ELEMENT_ARRAY_BUFFER, gl.createBuffer());
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    return {
      kind: "webgl2",
      ink(colors, order) {
        gl.bufferData(gl.ARRAY_BUFFER, colors, gl.DYNAMIC_DRAW);
        gl.bufferData(gl.ELEMENT_ARRAY_BUFFER, order, gl.DYNAMIC_DRAW);
      },
      draw({ x, y, scale }, radius, parts) {
        const { width, height } = canvas;
        gl.viewport(0, 0, width, height);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        gl.uniform1f(size, 2 * radius + 1);
        gl.uniform4f(view, 2 * scale / width, 2 * scale / height,
          -2 * scale * x / width, -2 * scale * y / height);
        for (const [from, count] of parts) {
          gl.drawElements(gl.POINTS, count, gl.UNSIGNED_INT, 4 * from);
        }
      },
      finish: () => gl.finish(),
    };
  };

  // The same on the CPU: density and points are blended in memory and shown at once. To read back
  // what a canvas shows would take longer than all points.
  const onCpu = (canvas, places) => {
    let [colors, order] = [null, null];
    // A loop of its own over typed arrays: browsers make machine code of it after a few points.
    const blend = (data, width, height, discs, reach, from, end, x, y, scale) => {
      for (let k = from; k < end; k += 1) {
        const i = order[k];
        const left = width / 2 + (places[2 * i] - x) * scale;
        const top = height / 2 - (places[2 * i + 1] - y) * scale;
        if (left < reach || top < reach || left >= width - reach || top >= height - reach) continue;
        const column = Math.floor(left);
        const line = Math.floor(top);
        const shade = colors[i];
        const [red, green, blue] = [shade & 255, shade >> 8 & 255, shade >> 16 & 255];
        const stencil = discs[16 * (shade >>> 24) + ((left - column) * 4 | 0) +
          4 * ((top - line) * 4 | 0)];
        const base = 4 * (line * width + column);
        for (let at = 0; at < stencil.length; at += 2) {
          const pixel = base + stencil[at];
          const share = stencil[at + 1];
          data[pixel] += ((red - data[pixel]) * share) >> 8;
          data[pixel + 1] += ((green - data[pixel + 1]) * share) >> 8;
          data[pixel + 2] += ((blue - data[pixel + 2]) * share) >> 8;
        }
      }
    };
    // Offsets of bytes and shares of 256, for each opacity in use and each quarter of a pixel.
    const discsOf = (radius, width) => {
      const discs = new Array(16 * 256).fill(null);
      let reach = 0;
      for (const alpha of new Set(colors.map((shade) => shade >>> 24))) {
        const disc = Scatter.disc(radius, alpha / 255);
        reach = disc.reach;
        disc.stencils.forEach((stencil, quarter) => {
          const flat = new Int32Array(stencil.length / 3 * 2);
          for (let at = 0; at < stencil.length; at += 3) {
            flat[at / 3 * 2] = 4 * (stencil[at + 1] * width + stencil[at]);
            flat[at / 3 * 2 + 1] = stencil[at + 2];
          }
          discs[16 * alpha + quarter] = flat;
        });
      }
      return { discs, reach };
    };
    // Density between four cells by linear interpolation; `inks` are colours of its shares.
    const back = (pixels, width, height, { x, y, scale }, density, inks, paper) => {
      if (!density) {
        pixels.fill(paper);
        return;
      }
      const { alpha, step, rim, width: n, height: m } = density;
      const across = new Float32Array(n);
      for (let line = 0; line < height; line += 1) {
        const row = (y + (height / 2 - line) / scale) / step + rim - 0.5;
        const low = Math.floor(row);
        const begin = line * width;
        if (low < 0 || low >= m - 1) {
          pixels.fill(paper, begin, begin + width);
          continue;
        }
        for (let k = 0; k < n; k += 1) {
          const below = alpha[low * n + k];
          across[k] = below + (row - low) * (alpha[low * n + n + k] - below);
        }
        const each = 1 / (scale * step);
        let column = (x - width / 2 / scale) / step + rim - 0.5;
        for (let k = 0; k < width; k += 1, column += each) {
          const left = column | 0;
          pixels[begin + k] = column < 0 || left >= n - 1 ? paper
            : inks[across[left] + (column - left) * (across[left + 1] - across[left]) + 0.5 | 0];
        }
      }
    };
    let made = {};
    let [image, pixels] = [null, null];
    return {
      kind: "cpu",
      ink(given, indices) {
        [colors, order] = [given, indices];
        made = {};
      },
      draw({ x, y, scale }, radius, parts, density, background) {
        const { width, height } = canvas;
        if (image?.width !== width || image.height !== height) {
          image = new ImageData(width, height);
          pixels = new Uint32Array(image.data.buffer);
        }
        if (made.radius !== radius || made.width !== width) {
          made = { radius, width, ...discsOf(radius, width) };
        }
        const [paper, shade] = [background, density?.shade ?? background].map(Scatter.channels);
        const inks = Uint32Array.from({ length: DENSEST + 1 }, (_, share) => paper
          .map((c, at) => Math.round(c + (shade[at] - c) * share / 255))
          .reduce((sum, c, at) => sum | c << 8 * at, 255 << 24));
        back(pixels, width, height, { x, y, scale }, density, inks, inks[0]);
        for (const [from, count] of parts) {
          blend(image.data, width, height, made.discs, made.reach, from, from + count, x, y, scale);
        }
        canvas.getContext("2d").putImageData(image, 0, 0);
      },
      finish() {},
    };
  };

  // How many points lie where, smoothed, as opacities of the cells of a grid.
  const densityOf = (places, span) => {
    const step = Math.max(...span) / CELLS;
    const rim = 8;
    const [width, height] = span.map((side) => Math.ceil(side / step) + 1 + 2 * rim);
    let counts = new Float32Array(width * height);
    for (let i = 0; i < places.length; i += 2) {
      counts[(rim + Math.floor(places[i + 1] / step)) * width + rim +
        Math.floor(places[i] / step)] += 1;
    }
    for (let pass = 0; pass < 3; pass += 1) {
      for (const [away, n, other, m] of [[1, width, width, height], [width, height, 1, width]]) {
        const smooth = new Float32Array(counts.length);
        for (let line = 0; line < m; line += 1) {
          let sum = 0;
          for (let k = -2; k < n; k += 1) {
            if (k + 2 < n) sum += counts[line * other + (k + 2) * away];
            if (k >= 3) sum -= counts[line * other + (k - 3) * away];
            if (k >= 0) smooth[line * other + k * away] = sum / 5;
          }
        }
        counts = smooth;
      }
    }
    const most = Math.sqrt(counts.reduce((a, b) => Math.max(a, b), 0)) || 1;
    const alpha = Uint8Array.from(counts, (count) =>
      Math.round(DENSEST * Math.max(Math.sqrt(count) / most - 0.04, 0)));
    return { alpha, step, rim, width, height };
  };
  const imageOf = ({ alpha, width, height, shade }) => {
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [width, height];
    const image = new ImageData(width, height);
    const [red, green, blue] = Scatter.channels(shade);
    for (let line = 0; line < height; line += 1) {
      for (let k = 0; k < width; k += 1) {
        const pixel = 4 * ((height - 1 - line) * width + k);
        image.data.set([red, green, blue, alpha[line * width + k]], pixel);
      }
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  };

  const wrapped = (name) => {
    const lines = [];
    for (const word of (name.length > 46 ? `${name.slice(0, 45)}…` : name).split(/\s+/)) {
      const last = lines.at(-1);
      if (last !== undefined && last.length + word.length < 20) lines[lines.length - 1] += ` ${word}`;
      else lines.push(word.length > 26 ? `${word.slice(0, 25)}…` : word);
    }
    return lines.slice(0, 3);
  };

  // Which names stand where, in pixels: of few topics over the whole map, of more topics nearer.
  const placeNames = (context, names, view, width, height) => {
    const [placed, boxes] = [[], []];
    for (const name of names) {
      if (!name.anchor) continue;
      const left = width / 2 + (name.anchor[0] - view.x) * view.scale;
      const top = height / 2 - (name.anchor[1] - view.y) * view.scale;
      if (left < 0 || top < 0 || left > width || top > height) continue;
      context.font = name.font;
      const lines = name.lines ??= wrapped(name.label);
      const half = [Math.max(...lines.map((line) => context.measureText(line).width)) / 2 + 4,
        lines.length * name.height / 2 + 2];
      for (const [right, down] of OFFSETS) {
        const x = Math.min(Math.max(left + 2 * right * half[0], half[0]), width - half[0]);
        const y = Math.min(Math.max(top + 2 * down * half[1], half[1]), height - half[1]);
        if (boxes.some(([a, b, w, h]) =>
          Math.abs(a - x) < w + half[0] && Math.abs(b - y) < h + half[1])) continue;
        boxes.push([x, y, ...half]);
        placed.push({ ...name, x, y, lines });
        break;
      }
      if (placed.length >= 60) break;
    }
    return placed;
  };

  // An order in which every beginning is spread over all points.
  const shuffled = (n) => {
    const order = new Uint32Array(n);
    const gcd = (a, b) => (b ? gcd(b, a % b) : a);
    let stride = Math.max(Math.floor(n * 0.618034), 1);
    while (gcd(stride, n) > 1) stride += 1;
    for (let k = 0, at = 0; k < n; k += 1) {
      order[k] = at;
      at = (at + stride) % n;
    }
    return order;
  };

  // Maps that share a view move together.
  const make = (holder, { n, places, span, view }) => {
    const [backdrop, dots, over] = holder.querySelectorAll("canvas");
    const asked = new URLSearchParams(location.hash.slice(1));
    const card = asked.has("cpu") || !n ? null : onCard(dots, places, asked);
    const painter = card ?? onCpu(backdrop, places);
    const base = shuffled(n);
    const order = new Uint32Array(n);
    const visible = new Int8Array(n);
    let [segments, density, share, ratio] = [[], null, 1, 1];

    const atlas = {
      kind: painter.kind, holder, places, visible, order,
      // Colours as RGBA of each row, and the pass, 0 to 2, in which each is drawn.
      ink(colors, passes, shade) {
        const counts = [0, 0, 0];
        for (let k = 0; k < n; k += 1) counts[passes[k]] += 1;
        const next = [0, counts[0], counts[0] + counts[1]];
        segments = counts.map((count, pass) => [next[pass], count]);
        for (let k = 0; k < n; k += 1) order[next[passes[base[k]]]++] = base[k];
        painter.ink(colors, order);
        density ??= densityOf(places, span);
        if (density.shade !== shade) {
          density.shade = shade;
          if (card) density.image = imageOf(density);
        }
      },
      resize() {
        ratio = Math.min(window.devicePixelRatio || 1, 2);
        for (const canvas of [backdrop, dots, over]) {
          const [width, height] = [holder.clientWidth, holder.clientHeight]
            .map((side) => Math.max(Math.round(side * ratio), 1));
          if (canvas.width !== width || canvas.height !== height) {
            [canvas.width, canvas.height] = [width, height];
          }
        }
        const margin = Math.min(64, holder.clientWidth / 8) * ratio;
        view.fit = Math.max(Math.min((backdrop.width - margin) / span[0],
          (backdrop.height - margin) / span[1]), 1e-6);
        atlas.ratio = ratio;
      },
      // Draw all, or while the map moves so many points as a short while allows.
      draw(background, moves) {
        view.scale = view.fit * view.zoom;
        if (card) {
          const context = backdrop.getContext("2d");
          context.fillStyle = background;
          context.fillRect(0, 0, backdrop.width, backdrop.height);
          const { image, step, rim, width, height } = density;
          context.imageSmoothingQuality = "high";
          context.drawImage(image,
            backdrop.width / 2 + (-rim * step - view.x) * view.scale,
            backdrop.height / 2 - ((height - rim) * step - view.y) * view.scale,
            width * step * view.scale, height * step * view.scale);
        }
        const radius = atlas.radius();
        const part = moves ? share : 1;
        const begin = performance.now();
        painter.draw(view, radius,
          segments.map(([from, count]) => [from, Math.ceil(count * part)]), density, background);
        if (moves) {
          painter.finish();
          const took = Math.max(performance.now() - begin, 0.5);
          share = Math.min(1, Math.max(share * Math.min(SWIFT / took, 1.5), Math.min(1, 5000 / n)));
        }
        return part === 1;
      },
      radius: () => Math.min(Math.max(5.6 - 0.95 * Math.log10(n + 1), 0.8), 4) * ratio *
        Math.min(view.zoom ** 0.3, 2.4),
      at: (i) => [backdrop.width / 2 + (places[2 * i] - view.x) * view.scale,
        backdrop.height / 2 - (places[2 * i + 1] - view.y) * view.scale].map((v) => v / ratio),
      // From pixels of the page to steps of the map.
      under: (left, top) => [(left * ratio - backdrop.width / 2) / view.scale + view.x,
        (backdrop.height / 2 - top * ratio) / view.scale + view.y],
      nearest(left, top) {
        const [x, y] = atlas.under(left, top);
        return Scatter.nearest(places, visible, x, y, 14 * ratio / view.scale);
      },
      next: (look, from, [right, down]) => Scatter.next(places, look, from, [right, -down]),
      inside: (line) => Scatter.inside(places, visible, line),
      move(right, down) {
        view.x = Math.min(Math.max(view.x - right * ratio / view.scale, 0), span[0]);
        view.y = Math.min(Math.max(view.y + down * ratio / view.scale, 0), span[1]);
      },
      zoom(factor, left, top) {
        const before = atlas.under(left, top);
        view.zoom = Math.min(Math.max(view.zoom * factor, 0.5), 400);
        view.scale = view.fit * view.zoom;
        const after = atlas.under(left, top);
        view.x += before[0] - after[0];
        view.y += before[1] - after[1];
        atlas.move(0, 0);
      },
      reset() { Object.assign(view, { x: span[0] / 2, y: span[1] / 2, zoom: 1 }); },
      names(list) {
        return placeNames(over.getContext("2d"), list,
          { ...view, scale: view.scale / ratio }, holder.clientWidth, holder.clientHeight);
      },
      // What lies over the points: names, the points looked at, the first of them tied to its
      // neighbours, and the line that is drawn.
      drawOver(names, { halo, ink, marked, near, line }) {
        const context = over.getContext("2d");
        context.setTransform(ratio, 0, 0, ratio, 0, 0);
        context.clearRect(0, 0, over.width, over.height);
        context.textAlign = "center";
        context.textBaseline = "middle";
        context.lineJoin = "round";
        for (const name of names) {
          context.font = name.font;
          context.lineWidth = 4;
          context.strokeStyle = halo;
          context.fillStyle = name.color;
          name.lines.forEach((text, k) => {
            const y = name.y + (k - (name.lines.length - 1) / 2) * name.height;
            context.strokeText(text, name.x, y);
            context.fillText(text, name.x, y);
          });
        }
        const stroke = (...lines) => {
          for (const [width, color] of lines) {
            context.lineWidth = width;
            context.strokeStyle = color;
            context.stroke();
          }
        };
        for (const i of near) {
          context.beginPath();
          context.moveTo(...atlas.at(marked[0]));
          context.lineTo(...atlas.at(i));
          stroke([3, halo], [1, ink]);
          context.beginPath();
          context.arc(...atlas.at(i), 3.5, 0, 2 * Math.PI);
          stroke([1.25, ink]);
        }
        for (const i of marked) {
          context.beginPath();
          context.arc(...atlas.at(i), 7, 0, 2 * Math.PI);
          stroke([5, halo], [2.25, ink]);
        }
        if (!line) return;
        context.beginPath();
        for (let k = 0; k < line.length; k += 2) {
          context.lineTo((backdrop.width / 2 + (line[k] - view.x) * view.scale) / ratio,
            (backdrop.height / 2 - (line[k + 1] - view.y) * view.scale) / ratio);
        }
        context.closePath();
        context.setLineDash([5, 4]);
        context.lineWidth = 1.5;
        context.strokeStyle = ink;
        context.stroke();
        context.setLineDash([]);
      },
      // All layers in one canvas.
      picture(background) {
        atlas.draw(background, false);
        const canvas = document.createElement("canvas");
        [canvas.width, canvas.height] = [backdrop.width, backdrop.height];
        const context = canvas.getContext("2d");
        for (const layer of [backdrop, dots, over]) context.drawImage(layer, 0, 0);
        return canvas;
      },
    };
    return atlas;
  };

  return { make };
})();
