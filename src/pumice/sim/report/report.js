"use strict";
// Draws the charts of a simulation report from the data in the page.  No library, nothing fetched.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const confs = data.configurations;
  const end = data.edges[data.edges.length - 1];
  const middle = data.edges.slice(1).map((edge, i) => (edge + data.edges[i]) / 2);
  const state = { resource: data.main, from: 0, to: end };
  const tip = document.getElementById("tip");
  const NS = "http://www.w3.org/2000/svg";
  // A canvas needs the colour that a custom property stands for, not its text.
  const probe = document.body.appendChild(document.createElement("i"));
  probe.hidden = true;
  function ink(name) {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  }
  const queueColour = (name) => `var(--c${Math.max(data.queues.indexOf(name), 0) % 12})`;

  // Numbers and times

  const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  function unitFor(span) {
    return UNITS.find(([seconds]) => span >= 2 * seconds) || [1, "s"];
  }
  function duration(seconds) {
    if (seconds === null || seconds === undefined) return "–";
    const [size, name] = UNITS.find(([each]) => Math.abs(seconds) >= each) || [1, "s"];
    return `${number(seconds / size)} ${name}`;
  }
  function number(value) {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
    return value.toLocaleString("en", { maximumFractionDigits: digits });
  }
  const percent = (value) => (value === null ? "–" : `${(100 * value).toFixed(1)} %`);

  function ticks(low, high, about) {
    const raw = (high - low) / about || 1;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw * 0.999);
    const out = [];
    for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-6; x += step) out.push(x);
    return out;
  }
  function timeTicks(low, high, about) {
    const [size, name] = unitFor(high - low);
    return ticks(low / size, high / size, about).map((x) => [x * size, `${number(x)} ${name}`]);
  }

  // Small SVG helpers

  function node(name, attributes, parent) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    if (parent) parent.append(made);
    return made;
  }
  function text(parent, x, y, words, anchor) {
    node("text", { x, y, "text-anchor": anchor || "start" }, parent).textContent = words;
  }
  function frame(host, height, label) {
    const width = Math.max(host.clientWidth, 240);
    const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
    host.replaceChildren(svg);
    const box = { left: 46, right: width - 12, top: 8, bottom: height - 22, width, height, svg };
    return box;
  }
  function axes(box, x, y, low, high, format) {
    const about = Math.max(2, Math.min(5, Math.floor((box.bottom - box.top) / 34)));
    for (const value of ticks(low, high, about)) {
      node("line", { class: "grid", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }, box.svg);
      text(box.svg, box.left - 6, y(value) + 4, format(value), "end");
    }
    const room = Math.max(2, Math.floor((box.right - box.left) / 95));
    for (const [value, words] of timeTicks(state.from, state.to, room)) {
      text(box.svg, x(value), box.bottom + 16, words, x(value) > box.right - 20 ? "end" : "middle");
    }
  }
  function timeScale(box) {
    const scale = (t) => box.left + ((t - state.from) / (state.to - state.from)) * (box.right - box.left);
    scale.invert = (px) => state.from + ((px - box.left) / (box.right - box.left)) * (state.to - state.from);
    return scale;
  }
  function path(values, x, y) {
    let out = "";
    let pen = false;
    values.forEach((value, i) => {
      if (value === null || middle[i] < state.from || middle[i] > state.to) { pen = false; return; }
      out += `${pen ? "L" : "M"}${x(middle[i]).toFixed(1)} ${y(value).toFixed(1)}`;
      pen = true;
    });
    return out;
  }
  function area(low, high, x, y) {
    const forth = [];
    const back = [];
    high.forEach((value, i) => {
      if (middle[i] < state.from || middle[i] > state.to) return;
      forth.push(`${x(middle[i]).toFixed(1)} ${y(value).toFixed(1)}`);
      back.unshift(`${x(middle[i]).toFixed(1)} ${y(low[i]).toFixed(1)}`);
    });
    return forth.length ? `M${forth.join("L")}L${back.join("L")}Z` : "";
  }
  const visible = (values) => values.filter((v, i) => v !== null && middle[i] >= state.from && middle[i] <= state.to);
  const top = (lists) => Math.max(0, ...lists.map((list) => visible(list).reduce((a, b) => Math.max(a, b), 0)));

  // Pointing and zooming

  function showTip(event, words) {
    tip.textContent = words;
    tip.hidden = false;
    const { width, height } = tip.getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - width - 8)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - height - 8)}px`;
  }
  function follow(box, x, describe) {
    const cross = node("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" }, box.svg);
    const brush = node("rect", { class: "brush", y: box.top, height: box.bottom - box.top, width: 0 }, box.svg);
    let start = null;
    const where = (event) => {
      const bounds = box.svg.getBoundingClientRect();
      const px = ((event.clientX - bounds.left) / bounds.width) * box.width;
      return Math.min(Math.max(px, box.left), box.right);
    };
    box.svg.addEventListener("pointermove", (event) => {
      const px = where(event);
      cross.setAttribute("x1", px);
      cross.setAttribute("x2", px);
      cross.setAttribute("visibility", "visible");
      if (start !== null) {
        brush.setAttribute("x", Math.min(start, px));
        brush.setAttribute("width", Math.abs(px - start));
      }
      const t = x.invert(px);
      const i = Math.min(middle.length - 1, Math.max(0, Math.floor((t / end) * middle.length)));
      showTip(event, `${duration(t)}\n${describe(i)}`);
    });
    box.svg.addEventListener("pointerleave", () => { tip.hidden = true; cross.setAttribute("visibility", "hidden"); });
    box.svg.addEventListener("pointerdown", (event) => { start = where(event); event.preventDefault(); });
    box.svg.addEventListener("pointerup", (event) => {
      const px = where(event);
      if (start !== null && Math.abs(px - start) > 8) zoom(x.invert(Math.min(start, px)), x.invert(Math.max(start, px)));
      start = null;
      brush.setAttribute("width", 0);
    });
    box.svg.addEventListener("dblclick", () => zoom(0, end));
  }
  function zoom(from, to) {
    state.from = from;
    state.to = to;
    drawAll();
  }

  // Charts

  function lines(host, height, label, series, format, ceiling, floor) {
    const box = frame(host, height, label);
    const low = floor || 0;
    const high = ceiling === undefined ? top(series.map((s) => s.values)) * 1.08 || 1 : ceiling;
    const x = timeScale(box);
    const y = (v) => box.bottom - ((v - low) / (high - low)) * (box.bottom - box.top);
    axes(box, x, y, low, high, format);
    for (const one of series) {
      node("path", {
        d: path(one.values, x, y), fill: "none", stroke: one.colour, "stroke-width": one.width || 1.8,
        "stroke-dasharray": one.dash || "", "stroke-linejoin": "round",
      }, box.svg);
    }
    follow(box, x, (i) => series.map((s) => `${s.name}: ${format(s.values[i])}`).join("\n"));
  }

  function drawUtilisation(host) {
    const several = confs.length > 1;
    const series = confs.map((conf, i) => ({
      name: several ? conf.name : data.resources[state.resource].name,
      values: conf.utilisation[state.resource], colour: `var(--c${i})`,
    }));
    legend(host, several ? series.map((s) => [s.name, s.colour]) : []);
    lines(slot(host), 210, "part of the cluster in use over time", series, percent, 1.02);
  }
  function drawFairness(host) {
    const series = confs.map((conf, i) => ({ name: conf.name, values: conf.fairness, colour: `var(--c${i})` }));
    legend(host, confs.length > 1 ? series.map((s) => [s.name, s.colour]) : []);
    lines(slot(host), 150, "fairness over time", series, (v) => number(v), 1.02);
  }
  function drawLengths(host, conf) {
    const series = conf.queues.map((q) => ({ name: q.name, values: q.waiting, colour: queueColour(q.name), width: 1.5 }));
    series.unshift({ name: "all queues", values: conf.lengths, colour: "var(--soft)", width: 1, dash: "3 3" });
    const ceiling = Math.max(...confs.map((c) => top([c.lengths]))) * 1.08 || 1;
    lines(host, 220, `jobs waiting, ${conf.name}`, series, number, ceiling);
  }

  function drawQueue(host, conf, queue) {
    const r = state.resource;
    const others = confs.map((c) => c.queues.find((q) => q.name === queue.name));
    const limit = data.totals[r] / data.resources[r].scale;
    const cap = queue.capability[r];
    const reach = Math.max(...others.map((q) => Math.max(top([q.allocated[r], q.due[r]]), q.guarantee[r])));
    const high = Math.min(Math.max(reach, cap !== null && cap <= 2 * reach ? cap : 0) * 1.1, limit * 1.05) || 1;
    const box = frame(host, 128, `what queue ${queue.name} holds, ${conf.name}`);
    const x = timeScale(box);
    const y = (v) => box.bottom - (Math.min(v, high) / high) * (box.bottom - box.top);
    axes(box, x, y, 0, high, number);
    const held = queue.allocated[r];
    const due = queue.due[r];
    const within = held.map((v, i) => Math.min(v, due[i]));
    const zero = held.map(() => 0);
    node("path", { d: area(zero, within, x, y), fill: "var(--within)" }, box.svg);
    node("path", { d: area(within, held, x, y), fill: "var(--beyond)" }, box.svg);
    node("path", { d: path(due, x, y), fill: "none", stroke: "var(--ink)", "stroke-width": 1.2, "stroke-dasharray": "4 3" }, box.svg);
    const level = (value, width, colour) => {
      if (value > 0 && value <= high) {
        node("line", { x1: box.left, x2: box.right, y1: y(value), y2: y(value), stroke: colour, "stroke-width": width }, box.svg);
      }
    };
    level(queue.guarantee[r], 1.5, "var(--good)");
    if (cap !== null) level(cap, 2.5, "var(--bad)");
    follow(box, x, (i) => [
      `holds ${number(held[i])} ${data.resources[r].unit}`, `deserves ${number(due[i])}`,
      `guaranteed ${number(queue.guarantee[r])}`, `at most ${cap === null ? "all" : number(cap)}`,
    ].join("\n"));
  }

  function drawWaits(host) {
    legend(host, confs.map((c, i) => [c.name, `var(--c${i})`]));
    const box = frame(slot(host), 220, "jobs that waited no longer than");
    const longest = Math.max(10, ...confs.map((c) => (c.waits.length ? c.waits[c.waits.length - 1] : 0)));
    const least = 1;
    const x = (t) => box.left + (Math.log(Math.max(t, least) / least) / Math.log(longest / least)) * (box.right - box.left);
    const y = (part) => box.bottom - part * (box.bottom - box.top);
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      node("line", { class: "grid", x1: box.left, x2: box.right, y1: y(part), y2: y(part) }, box.svg);
      text(box.svg, box.left - 6, y(part) + 4, `${100 * part} %`, "end");
    }
    const marks = [1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000].filter((t) => t <= longest);
    for (const t of marks) {
      node("line", { class: "grid", x1: x(t), x2: x(t), y1: box.top, y2: box.bottom }, box.svg);
      text(box.svg, x(t), box.bottom + 16, t === 1 ? "≤ 1 s" : duration(t), t === 1 ? "start" : "middle");
    }
    confs.forEach((conf, i) => {
      const n = conf.waits.length - 1;
      const d = conf.waits.map((t, k) => `${k ? "L" : "M"}${x(t).toFixed(1)} ${y(k / n).toFixed(1)}`).join("");
      node("path", { d, fill: "none", stroke: `var(--c${i})`, "stroke-width": 2 }, box.svg);
    });
    box.svg.addEventListener("pointermove", (event) => {
      const bounds = box.svg.getBoundingClientRect();
      const px = ((event.clientX - bounds.left) / bounds.width) * box.width;
      const t = least * Math.exp(((px - box.left) / (box.right - box.left)) * Math.log(longest / least));
      const part = (conf) => conf.waits.filter((w) => w <= t).length / Math.max(conf.waits.length, 1);
      showTip(event, [`at most ${duration(t)}`, ...confs.map((c) => `${c.name}: ${percent(part(c))}`)].join("\n"));
    });
    box.svg.addEventListener("pointerleave", () => { tip.hidden = true; });
  }

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
    pen.font = "11px system-ui, sans-serif";
    return { made, pen, width, height };
  }
  function timeAxis(pen, left, right, y) {
    pen.fillStyle = ink("--soft");
    const room = Math.max(2, Math.floor((right - left) / 95));
    for (const [value, words] of timeTicks(state.from, state.to, room)) {
      const px = left + ((value - state.from) / (state.to - state.from)) * (right - left);
      pen.textAlign = px > right - 20 ? "right" : "center";
      pen.fillText(words, px, y);
    }
  }
  function drawHeat(host, conf) {
    const heat = conf.heat;
    const rows = heat.rows.length;
    const each = Math.max(1, Math.min(14, Math.floor(420 / rows)));
    const { made, pen, width, height } = canvas(host, rows * each + 22, `use of nodes over time, ${conf.name}`);
    const left = 46;
    const right = width - 12;
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
    pen.drawImage(small, left, 0, right - left, rows * each);
    pen.strokeStyle = none;
    pen.strokeRect(left, 0, right - left, rows * each);
    pen.fillStyle = ink("--soft");
    pen.textAlign = "right";
    pen.fillText("1", left - 6, 10);
    pen.fillText(String(rows), left - 6, Math.max(rows * each - 1, 22));
    timeAxis(pen, left, right, height - 6);
    made.addEventListener("pointermove", (event) => {
      const bounds = made.getBoundingClientRect();
      const row = Math.floor(((event.clientY - bounds.top) / bounds.height) * height / each);
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
    const each = Math.max(3, Math.min(16, Math.floor(520 / Math.max(bars.length, 1))));
    const { made, pen, width, height } = canvas(host, bars.length * each + 22, `jobs over time, ${conf.name}`);
    const left = 46;
    const right = width - 12;
    const x = (t) => left + ((Math.min(Math.max(t, state.from), state.to) - state.from) / (state.to - state.from)) * (right - left);
    const grey = ink("--line");
    const bad = ink("--bad");
    const colours = new Map(data.queues.map((name, i) => [name, ink(`--c${i % 12}`)]));
    bars.forEach((bar, i) => {
      const y = i * each;
      const thick = Math.max(1, each - (each > 4 ? 2 : 1));
      const begin = bar.spans.length ? bar.spans[0][0] : end;
      pen.fillStyle = grey;
      pen.fillRect(x(bar.arrival), y + thick * 0.3, x(begin) - x(bar.arrival), Math.max(1, thick * 0.4));
      pen.fillStyle = colours.get(bar.queue) || ink("--c10");
      for (const [from, to] of bar.spans) {
        if (to < state.from || from > state.to) continue;
        pen.fillRect(x(from), y, Math.max(1, x(to) - x(from)), thick);
      }
      if (bar.spans.length && bar.pods > 1 && each >= 6 && begin >= state.from && begin <= state.to) {
        const half = thick / 2;
        pen.fillStyle = ink("--ink");
        pen.beginPath();
        pen.moveTo(x(begin), y);
        pen.lineTo(x(begin) + half * 0.7, y + half);
        pen.lineTo(x(begin), y + thick);
        pen.lineTo(x(begin) - half * 0.7, y + half);
        pen.fill();
      }
      pen.fillStyle = bad;
      for (const t of bar.evicted) {
        if (t >= state.from && t <= state.to) pen.fillRect(x(t) - 1, y - 1, 2.5, thick + 2);
      }
    });
    timeAxis(pen, left, right, height - 6);
    made.addEventListener("pointermove", (event) => {
      const bounds = made.getBoundingClientRect();
      const bar = bars[Math.floor((((event.clientY - bounds.top) / bounds.height) * height) / each)];
      if (!bar) { tip.hidden = true; return; }
      const waited = bar.spans.length ? `waited ${duration(bar.spans[0][0] - bar.arrival)}` : "never started";
      const ran = bar.spans.map(([from, to]) => duration(to - from)).join(", then ");
      const lost = bar.evicted.length ? `\nevicted at ${bar.evicted.map(duration).join(", ")}` : "";
      showTip(event, `${bar.name}\n${bar.pods} pods, queue ${bar.queue}\n${waited}${ran ? `, ran ${ran}` : ""}${lost}`);
    });
    made.addEventListener("pointerleave", () => { tip.hidden = true; });
  }
  // The page

  function slot(host) {
    let found = host.querySelector(":scope > .slot");
    if (!found) {
      found = document.createElement("div");
      found.className = "slot";
      host.append(found);
    }
    return found;
  }
  function legend(host, entries, extra) {
    let found = host.querySelector(":scope > .legend");
    if (!found) {
      found = document.createElement("div");
      found.className = "legend";
      host.prepend(found);
    }
    found.replaceChildren(...entries.map(([name, colour, dash]) => {
      const made = document.createElement("span");
      made.textContent = name;
      made.style.setProperty("--swatch", colour);
      if (dash) {
        made.className = "stroke";
        made.style.setProperty("--dash", dash);
      }
      return made;
    }));
    if (extra) found.append(extra);
  }
  function each(id, draw) {
    const host = document.getElementById(id);
    let beside = host.querySelector(":scope > .beside");
    if (!beside) {
      beside = document.createElement("div");
      beside.className = confs.length > 1 ? "beside many" : "beside";
      beside.style.setProperty("--n", confs.length);
      for (const conf of confs) {
        const cell = document.createElement("div");
        if (confs.length > 1) cell.append(Object.assign(document.createElement("h3"), { textContent: conf.name }));
        cell.append(Object.assign(document.createElement("div"), { className: "slot" }));
        beside.append(cell);
      }
      host.append(beside);
    }
    confs.forEach((conf, i) => draw(beside.children[i].querySelector(".slot"), conf));
  }
  function drawQueues(host, conf) {
    if (!host.firstElementChild) {
      host.className = "slot panels";
      for (const queue of conf.queues) {
        const panel = document.createElement("div");
        panel.append(Object.assign(document.createElement("h3"), { textContent: queue.name }));
        panel.append(document.createElement("div"));
        host.append(panel);
      }
    }
    conf.queues.forEach((queue, i) => drawQueue(host.children[i].lastElementChild, conf, queue));
  }
  function ramp() {
    const made = document.createElement("span");
    made.className = "ramp";
    const bar = document.createElement("i");
    const stops = [0, 0.25, 0.5, 0.75, 1].map((part) => `rgb(${rampColour(part).join(" ")})`);
    bar.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
    made.append("idle ", bar, " full");
    return made;
  }
  function tools() {
    for (const host of document.querySelectorAll(".tools")) {
      host.replaceChildren(...data.resources.map((resource, i) => {
        const button = document.createElement("button");
        button.type = "button";
        button.textContent = resource.name;
        button.setAttribute("aria-pressed", String(i === state.resource));
        button.addEventListener("click", () => { state.resource = i; drawAll(); });
        return button;
      }));
      if (state.from > 0 || state.to < end) {
        const reset = Object.assign(document.createElement("button"), { type: "button", textContent: "whole time" });
        reset.addEventListener("click", () => zoom(0, end));
        host.append(reset);
      }
    }
  }
  function drawAll() {
    tools();
    drawUtilisation(document.getElementById("utilisation"));
    each("queues", drawQueues);
    const colours = data.queues.map((name) => [name, queueColour(name)]);
    legend(document.getElementById("lengths-key"), [["all queues", "var(--soft)", "dashed"], ...colours]);
    each("lengths", drawLengths);
    drawWaits(document.getElementById("waits"));
    drawFairness(document.getElementById("fairness"));
    legend(document.getElementById("heat-key"), [], ramp());
    each("heat", drawHeat);
    legend(document.getElementById("gantt-key"), [["waiting", "var(--line)"], ...colours, ["evicted", "var(--bad)"]]);
    each("gantt", drawGantt);
  }
  let pending = 0;
  addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(drawAll, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  drawAll();
})();
