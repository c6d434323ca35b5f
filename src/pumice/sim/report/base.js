// Numbers, times, axes, pointing and zooming: what all charts share.
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
const LEFT = 54;
const SINCE = "time since the first arrival";
// ``vertical`` says what the upright axis counts, in what unit; ``across`` what the other one does.
function frame(host, height, label, vertical, across) {
  const width = Math.max(host.clientWidth, 240);
  const svg = node("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
  host.replaceChildren(svg);
  const box = { left: LEFT, right: width - 14, top: 22, bottom: height - 36, width, height, svg };
  text(svg, 2, 11, vertical, "start");
  text(svg, (box.left + box.right) / 2, height - 4, across || SINCE, "middle");
  node("line", { class: "axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom }, svg);
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
    node("line", { class: "axis", x1: x(value), x2: x(value), y1: box.bottom, y2: box.bottom + 4 }, box.svg);
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
