// Charts with many cells or bars, drawn on a canvas.
// Canvases

const dark = () => matchMedia("(prefers-color-scheme: dark)").matches;
// One hue, lightness rising evenly: safe for colour blindness, and in grey.
function rampColour(part) {
  const from = dark() ? [30, 36, 44] : [240, 244, 248];
  const to = dark() ? [120, 205, 255] : [4, 62, 110];
  return from.map((c, i) => Math.round(c + (to[i] - c) * part));
}
function canvas(host, height, label) {
  const made = document.createElement("canvas");
  const width = Math.max(host.clientWidth, 240);
  const dense = devicePixelRatio || 1;
  made.width = width * dense;
  made.height = height * dense;
  made.style.height = `${height}px`;
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", label);
  host.replaceChildren(made);
  const pen = made.getContext("2d");
  pen.scale(dense, dense);
  pen.font = "11px system-ui, -apple-system, 'Segoe UI', 'Liberation Sans', sans-serif";
  return { made, pen, width, height };
}
function timeAxis(pen, left, right, bottom, span) {
  pen.fillStyle = ink("--soft");
  pen.strokeStyle = ink("--soft");
  const room = Math.max(2, Math.floor((right - left) / 95));
  for (const [value, words] of timeTicks(span[0], span[1], room)) {
    const px = left + ((value - span[0]) / (span[1] - span[0])) * (right - left);
    pen.fillRect(px, bottom, 1, 4);
    pen.textAlign = px > right - 20 ? "right" : "center";
    pen.fillText(words, px, bottom + 16);
  }
  pen.textAlign = "center";
  pen.fillText(SINCE, (left + right) / 2, bottom + 32);
}
// Numbers of nodes to write beside the rows: the first, round ones, the last.
function rowTicks(n) {
  const round = ticks(0, n, 6).filter((x) => x >= 1 && Number.isInteger(x) && n - x > n / 20 && x > n / 20);
  return n < 4 ? Array.from({ length: n }, (_, i) => i + 1) : [1, ...round, n];
}
function drawHeat(host, conf) {
  const heat = conf.heat;
  const rows = heat.rows.length;
  const each = Math.max(1, Math.min(16, Math.floor(420 / rows)));
  const above = 18;
  const { made, pen, width, height } = canvas(host, above + rows * each + 38, `use of nodes over time, ${conf.name}`);
  const left = LEFT;
  const right = width - 14;
  const bytes = Uint8Array.from(atob(heat.cells), (c) => c.charCodeAt(0));
  const first = Math.floor((state.from / end) * heat.columns);
  const last = Math.max(first + 1, Math.ceil((state.to / end) * heat.columns));
  const image = new ImageData(last - first, rows);
  const none = ink("--line");
  for (let row = 0; row < rows; row += 1) {
    for (let column = first; column < last; column += 1) {
      const cell = bytes[row * heat.columns + column];
      const [r, g, b] = cell === 255 ? [0, 0, 0] : rampColour(cell / 254);
      image.data.set([r, g, b, cell === 255 ? 0 : 255], 4 * (row * (last - first) + column - first));
    }
  }
  const small = document.createElement("canvas");
  small.width = last - first;
  small.height = rows;
  small.getContext("2d").putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.fillStyle = none;
  pen.drawImage(small, left, above, right - left, rows * each);
  pen.strokeStyle = none;
  pen.strokeRect(left, above, right - left, rows * each);
  pen.fillStyle = ink("--soft");
  pen.textAlign = "left";
  pen.fillText("node", 2, 11);
  pen.textAlign = "right";
  for (const nth of rowTicks(heat.nodes)) {
    pen.fillText(number(nth), left - 6, above + ((nth - 0.5) / heat.nodes) * rows * each + 4);
  }
  timeAxis(pen, left, right, above + rows * each, [state.from, state.to]);
  made.addEventListener("pointermove", (event) => {
    const bounds = made.getBoundingClientRect();
    const row = Math.floor((((event.clientY - bounds.top) / bounds.height) * height - above) / each);
    const part = (((event.clientX - bounds.left) / bounds.width) * width - left) / (right - left);
    if (row < 0 || row >= rows || part < 0 || part >= 1) { tip.hidden = true; return; }
    const column = first + Math.floor(part * (last - first));
    const cell = bytes[row * heat.columns + column];
    const use = cell === 255 ? `has no ${heat.resource}` : `${percent(cell / 254)} of ${heat.resource}`;
    showTip(event, `${heat.rows[row]}\n${duration(middle[Math.min(column, middle.length - 1)])}\n${use}`);
  });
  made.addEventListener("pointerleave", () => { tip.hidden = true; });
}

function drawGantt(host, conf) {
  const bars = conf.gantt.bars;
  const each = bars.length > 80 ? 5 : 12;
  const thick = each - 2;
  const above = 4;
  const { made, pen, width, height } = canvas(host, above + bars.length * each + 38, `jobs over time, ${conf.name}`);
  const left = Math.min(170, width / 4);
  const right = width - 14;
  const [from, to] = conf.gantt.window || [state.from, state.to];
  const x = (t) => left + ((Math.min(Math.max(t, from), to) - from) / (to - from)) * (right - left);
  const inside = (t) => t >= from && t <= to;
  const grey = ink("--waiting");
  const bad = ink("--bad");
  const dot = ink("--ink");
  const soft = ink("--soft");
  const colours = new Map(data.queues.map((name, i) => [name, ink(`--c${i % 12}`)]));
  const other = ink("--c10");
  bars.forEach((bar, i) => {
    const y = above + i * each;
    const begin = bar.spans.length ? bar.spans[0][0] : end;
    if (each > 8) {
      pen.fillStyle = soft;
      pen.textAlign = "right";
      const name = bar.name.length > 20 ? `${bar.name.slice(0, 19)}…` : bar.name;
      pen.fillText(`${name} ×${bar.pods}`, left - 6, y + thick - 0.5, left - 8);
    }
    pen.fillStyle = grey;
    pen.fillRect(x(bar.arrival), y + thick * 0.35, x(begin) - x(bar.arrival), Math.max(1, thick * 0.3));
    pen.fillStyle = colours.get(bar.queue) || other;
    for (const [since, until] of bar.spans) {
      if (until >= from && since <= to) pen.fillRect(x(since), y, Math.max(1.5, x(until) - x(since)), thick);
    }
    if (bar.spans.length && bar.pods > 1 && inside(begin)) diamond(pen, x(begin), y + thick / 2, thick / 2, dot);
    pen.fillStyle = bad;
    for (const t of bar.evicted) if (inside(t)) pen.fillRect(x(t) - 1, y - 1, 2.5, thick + 2);
  });
  timeAxis(pen, left, right, above + bars.length * each, [from, to]);
  made.addEventListener("pointermove", (event) => {
    const bounds = made.getBoundingClientRect();
    const bar = bars[Math.floor((((event.clientY - bounds.top) / bounds.height) * height - above) / each)];
    if (!bar) { tip.hidden = true; return; }
    const waited = bar.spans.length ? `waited ${duration(bar.spans[0][0] - bar.arrival)}` : "never started";
    const ran = bar.spans.map(([since, until]) => duration(until - since)).join(", then ");
    const lost = bar.evicted.length ? `\nevicted at ${bar.evicted.map(duration).join(", ")}` : "";
    const words = `${bar.name}\n${bar.pods} pods, queue ${bar.queue}\ncame at ${duration(bar.arrival)}, ${waited}`;
    showTip(event, `${words}${ran ? `, ran ${ran}` : ""}${lost}`);
  });
  made.addEventListener("pointerleave", () => { tip.hidden = true; });
}
function diamond(pen, x, y, half, colour) {
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(x, y - half);
  pen.lineTo(x + half * 0.7, y);
  pen.lineTo(x, y + half);
  pen.lineTo(x - half * 0.7, y);
  pen.fill();
}
