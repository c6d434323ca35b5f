// Lays out the charts of a report; uPlot draws them. What they show is in the element #data.
const data = JSON.parse(document.getElementById("data").textContent);
const confs = data.configurations;
const end = data.edges.at(-1);
const view = { resource: data.main, from: 0, to: end };
const charts = new Map(); // element to chart
const tip = document.getElementById("tip");
let pointed = null; // the chart under the pointer or with the focus; the others show its moment

// Words and colours

const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
const unitOf = (seconds, n) => UNITS.find(([size]) => Math.abs(seconds) >= n * size) || [1, "s"];
function duration(seconds) {
  const [size, unit] = unitOf(seconds, 1);
  return `${number(seconds / size)} ${unit}`;
}
function number(value) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return value.toLocaleString("en", {
    maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2,
  });
}
const percent = (part) => (part === null || part === undefined ? "–" : `${number(100 * part)} %`);
// A canvas needs the colour behind a custom property, not its name.
const probe = document.body.appendChild(
  Object.assign(document.createElement("i"), { hidden: true }),
);
function colour(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}
const queueColour = (name) => colour(`c${Math.max(data.queues.indexOf(name), 0) % 12}`);
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];

// One chart

const FONT = '11.5px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif';
const [LEFT, RIGHT, BELOW] = [56, 20, 44];
const MINUTES = [1, 2, 5, 10, 15, 30];
const TIME_STEPS = [
  ...MINUTES,
  ...MINUTES.map((n) => 60 * n),
  ...[1, 2, 3, 6, 12].map((n) => 3600 * n),
  ...[1, 2, 5, 7, 10, 20, 50, 100, 200, 500].map((n) => 86400 * n),
];
const stepped = uPlot.paths.stepped({ align: 1, alignGaps: 1 });
/** A value for every edge: each lasts to the next. */
const hold = (values) => [...values, values.at(-1)];

function timeLabels(u, splits) {
  const [size, unit] = unitOf(u.scales.x.max - u.scales.x.min, 2);
  return splits.map((t) => `${number(t / size)} ${unit}`);
}
// ``isTime`` charts share their moment and their part of the time. ``paint`` draws on the canvas,
// ``describe`` words what is under the cursor; without them lines are drawn and read off.
function draw(host, options) {
  const { label, above, height, xs, lines, format, isTime = true, paint, describe } = options;
  const axis = {
    font: FONT,
    stroke: colour("soft"),
    ticks: { stroke: colour("line"), size: 4 },
    gap: 4,
  };
  const grid = { stroke: colour("line"), width: 1 };
  charts.get(host)?.destroy();
  host.replaceChildren(
    Object.assign(document.createElement("div"), { className: "above", textContent: above }),
  );
  const chart = new uPlot(
    {
      width: Math.max(host.clientWidth, 200),
      height,
      legend: { show: false },
      padding: [6, RIGHT, 0, 0],
      scales: { x: { time: false, ...options.x }, y: { range: [0, 1], ...options.y } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          border: { show: true, stroke: colour("soft"), width: 1 },
          size: 26,
          space: 65,
          incrs: TIME_STEPS,
          values: timeLabels,
          label: "time since the first arrival",
          labelFont: FONT,
          labelSize: 18,
          labelGap: 0,
          ...options.xAxis,
        },
        {
          ...axis,
          grid,
          size: LEFT,
          space: 30,
          values: (u, splits) => splits.map(format),
          ...options.yAxis,
        },
      ],
      series: [
        {},
        ...lines.map(({ ys, ...line }) => ({
          paths: stepped,
          width: 1.75,
          points: { show: false },
          ...line,
        })),
      ],
      cursor: {
        y: false,
        points: { show: false },
        drag: { setScale: !isTime, dist: 8 },
        // the value that holds at the pointer, not the nearest one
        dataIdx: (u, _, nearest, at) =>
          Math.max(u.data[0][nearest] > at ? nearest - 1 : nearest, 0),
        ...(isTime && {
          sync: {
            key: "time",
            scales: ["x", null],
            filters: { pub: (type) => type === "mousemove" || type === "mouseleave" },
          },
          bind: { dblclick: () => () => zoom(0, end) },
        }),
      },
      hooks: {
        draw: paint
          ? [
              (u) => {
                u.ctx.save();
                paint(u);
                u.ctx.restore();
              },
            ]
          : [],
        setCursor: [
          (u) => {
            if (u === pointed) showTip(u, (describe || readOff)(u, lines, format));
          },
        ],
        setSelect: isTime
          ? [
              (u) => {
                select(u);
              },
            ]
          : [],
        ready: [
          (u) => {
            makeReachable(u, label);
          },
        ],
      },
    },
    [xs, ...lines.map(({ ys }) => ys)],
    host,
  );
  chart.isTime = isTime;
  chart.whole = options.window || [0, end];
  charts.set(host, chart);
  resizing.observe(host);
}
const resizing = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const chart = charts.get(target);
    if (target.clientWidth && chart.width !== target.clientWidth) {
      chart.setSize({ width: target.clientWidth, height: chart.height });
    }
  }
});

// Pointing, by mouse or by arrow keys, and looking closer

function makeReachable(u, label) {
  for (const [name, value] of [
    ["role", "img"],
    ["aria-label", label],
    ["tabindex", "0"],
  ])
    u.root.setAttribute(name, value);
  const leave = () => {
    pointed = null;
    tip.hidden = true;
  };
  const enter = () => {
    pointed = u;
  };
  u.over.addEventListener("pointerenter", enter);
  u.over.addEventListener("pointerleave", leave);
  u.root.addEventListener("focus", enter);
  u.root.addEventListener("blur", leave);
  u.root.addEventListener("keydown", (event) => {
    const [dx, dy] =
      { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ||
      [];
    if (event.key === "Escape") leave();
    if (dx === undefined) return;
    event.preventDefault();
    const [width, height] = [u.over.clientWidth, u.over.clientHeight];
    const move = (at, step, most) => Math.min(Math.max((at < 0 ? most / 2 : at) + step, 0), most);
    u.setCursor({
      left: move(u.cursor.left, (dx * width) / 100, width),
      top: move(u.cursor.top, 12 * dy, height - 1),
    });
  });
}
function showTip(u, words) {
  tip.hidden = u.cursor.left < 0 || !words;
  if (tip.hidden) return;
  tip.textContent = words;
  const [over, mine] = [u.over.getBoundingClientRect(), tip.getBoundingClientRect()];
  const right = Math.min(over.left + u.cursor.left + 14, innerWidth - mine.width - 8);
  tip.style.left = `${Math.max(8, right)}px`;
  tip.style.top = `${Math.min(over.top + u.cursor.top + 14, innerHeight - mine.height - 8)}px`;
}
function readOff(u, lines, format) {
  const at = duration(u.posToVal(u.cursor.left, "x"));
  const values = lines.map(
    ({ label, ys }, i) => label && `${label}: ${format(ys[u.cursor.idxs[i + 1]])}`,
  );
  return [at, ...values.filter(Boolean)].join("\n");
}
function select(u) {
  const { left, width } = u.select;
  if (width > 8) zoom(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
  u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}
function zoom(from, to) {
  Object.assign(view, { from, to });
  const isWhole = from === 0 && to === end;
  for (const chart of charts.values()) {
    const [min, max] = isWhole ? chart.whole : [from, to];
    if (chart.isTime) chart.setScale("x", { min, max });
  }
  for (const button of document.querySelectorAll(".whole")) button.hidden = isWhole;
}

// The charts

const line = (label, values, name, more) => ({
  label,
  ys: hold(values),
  stroke: colour(name),
  ...more,
});
const byConf = (values) =>
  confs.map((conf, i) => line(conf.name, values(conf), `c${i % 12}`, { dash: DASHES[i % 4] }));
const highest = (lists) => Math.max(0, ...lists.flat().filter((value) => value !== null));

function drawUtilisation(host) {
  const { name, unit, total } = data.resources[view.resource];
  draw(host, {
    label: `part of ${name} in use over time`,
    above: `${name} in use, of ${number(total)} ${unit}`,
    height: 250,
    xs: data.edges,
    lines: byConf((conf) => conf.utilisation[view.resource]),
    format: percent,
    y: { range: [0, 1.02] },
  });
}
function drawQueue(host, conf, queue) {
  const r = view.resource;
  const { unit, total } = data.resources[r];
  const all = confs.map((other) => other.queues.find(({ name }) => name === queue.name));
  const cap = queue.capability[r];
  const reach = highest(all.map((q) => [...q.allocated[r], ...q.due[r], q.guarantee[r]]));
  const high =
    Math.min(Math.max(reach, cap !== null && cap <= 2 * reach ? cap : 0) * 1.1, total * 1.05) || 1;
  const flat = (value) => queue.due[r].map(() => value || null);
  const held = queue.allocated[r];
  draw(host, {
    label: `what queue ${queue.name} holds over time, ${conf.name}`,
    above: unit,
    height: 170,
    xs: data.edges,
    lines: [
      line("holds", held, "beyond", { fill: colour("beyond"), width: 0 }),
      line(
        "",
        held.map((value, i) => Math.min(value, queue.due[r][i])),
        "within",
        { fill: colour("within"), width: 0 },
      ),
      line("deserves", queue.due[r], "ink", { dash: [4, 3], width: 1.25 }),
      line("guaranteed", flat(queue.guarantee[r]), "good"),
      line("at most", flat(cap), "bad", { width: 2.5 }),
    ],
    format: number,
    y: { range: [0, high] },
  });
}
function drawWaiting(host, conf) {
  const queues = conf.queues.map(({ name, waiting }) => ({
    ...line(name, waiting, "ink"),
    stroke: queueColour(name),
  }));
  draw(host, {
    label: `jobs that wait over time, ${conf.name}`,
    above: "jobs that wait",
    height: 250,
    xs: data.edges,
    lines: [line("all queues", conf.lengths, "soft", { dash: [3, 3], width: 1.25 }), ...queues],
    format: number,
    y: { range: [0, Math.max(1, highest(confs.map((c) => c.lengths)) * 1.08)] },
  });
}
const WAITS = [0, 1, 10, 60, 600, 3600, 36000, 86400, 864000, 8640000];
function drawWaits(host) {
  const { seconds, parts } = data.waits;
  const last = seconds.at(-1);
  draw(host, {
    label: "part of the jobs that waited no longer than a time",
    above: "% of the jobs that started",
    height: 260,
    xs: seconds,
    lines: byConf(() => []).map((each, i) => ({ ...each, ys: parts[i], width: 2 })),
    format: percent,
    isTime: false,
    x: { distr: 4, asinh: 1, range: (u, min, max) => [min, max] },
    y: { range: [0, 1.02] },
    xAxis: {
      label: "waited at most",
      grid: { show: true, stroke: colour("line"), width: 1 },
      splits: WAITS.filter((t) => t <= last),
      filter: (u, splits) => splits,
      values: (u, splits) => splits.map(duration),
    },
  });
}
function drawFairness(host) {
  const lowest = Math.min(
    ...confs.flatMap((conf) => conf.fairness.filter((value) => value !== null)),
  );
  draw(host, {
    label: "fairness over time",
    above: "Jain's index, 1 = fair",
    height: 190,
    xs: data.edges,
    lines: byConf((conf) => conf.fairness),
    format: number,
    y: { range: [Math.min(0.8, Math.floor(10 * lowest) / 10), 1.01] },
  });
}

// Charts of rows: nodes, jobs

// ``names`` beside the rows, as many as there is room for, each as long as there is room for.
function drawRows(host, names, each, room, options) {
  const every = Math.ceil(13 / each);
  const fit = (u, name) => {
    u.ctx.font = FONT;
    let text = name;
    for (let n = name.length; u.ctx.measureText(text).width > room - 10 && n > 1; n -= 1)
      text = `${name.slice(0, n - 1)}…`;
    return text;
  };
  draw(host, {
    height: names.length * each + BELOW + 6,
    xs: data.edges,
    lines: [{ ys: data.edges.map(() => null) }],
    ...options,
    y: { range: [0, names.length], dir: -1 },
    yAxis: {
      grid: { show: false },
      ticks: { show: false },
      size: room,
      splits: () => names.flatMap((_, i) => (i % every ? [] : [i + 0.5])),
      values: (u, splits) => splits.map((at) => fit(u, names[Math.floor(at)])),
    },
  });
}
const rowAt = (u) => Math.floor(u.posToVal(u.cursor.top, "y"));
// One hue, lightness changing evenly: safe for colour blindness, and in grey.
const ramp = () =>
  ["idle", "full"].map((name) => colour(name).match(/\d+/g).slice(0, 3).map(Number));
function heatImage({ columns, rows }, bytes) {
  const [idle, full] = ramp();
  const image = new ImageData(columns, rows.length);
  bytes.forEach((cell, i) => {
    const shade = idle.map((c, k) => c + (full[k] - c) * (cell / 254));
    image.data.set(cell === 255 ? [0, 0, 0, 0] : [...shade, 255], 4 * i);
  });
  const canvas = Object.assign(document.createElement("canvas"), {
    width: columns,
    height: rows.length,
  });
  canvas.getContext("2d").putImageData(image, 0, 0);
  return canvas;
}
function drawHeat(host, conf) {
  const { heat } = conf;
  const { rows, columns, resource } = heat;
  const bytes = Uint8Array.from(atob(heat.cells), (c) => c.charCodeAt(0));
  const image = heatImage(heat, bytes);
  drawRows(host, rows, Math.max(1, Math.min(16, Math.floor(420 / rows.length))), 84, {
    label: `use of nodes over time, ${conf.name}`,
    above: "node",
    paint({ ctx, bbox, scales: { x } }) {
      const [from, width] = [(x.min / end) * columns, ((x.max - x.min) / end) * columns];
      ctx.imageSmoothingEnabled = false;
      ctx.drawImage(
        image,
        from,
        0,
        width,
        rows.length,
        bbox.left,
        bbox.top,
        bbox.width,
        bbox.height,
      );
    },
    describe(u) {
      const at = u.posToVal(u.cursor.left, "x");
      const cell =
        bytes[rowAt(u) * columns + Math.min(columns - 1, Math.floor((at / end) * columns))];
      const use = cell === 255 ? `has no ${resource}` : `${percent(cell / 254)} of ${resource}`;
      return cell === undefined ? "" : `${rows[rowAt(u)]}\n${duration(at)}\n${use}`;
    },
  });
}
function drawGantt(host, conf) {
  const { bars, window } = conf.gantt;
  const names = bars.map((bar) => `${bar.name} ×${bar.pods}`);
  const [waiting, bad, dark] = ["waiting", "bad", "ink"].map(colour);
  drawRows(host, names, 14, Math.min(140, host.clientWidth / 3), {
    label: `jobs over time, ${conf.name}`,
    above: "job × pods",
    window,
    ...(window && { x: { min: window[0], max: window[1] } }),
    paint(u) {
      const { ctx, bbox } = u;
      const x = (t) => u.valToPos(t, "x", true);
      const each = bbox.height / bars.length;
      const box = (from, to, y, height, least) =>
        ctx.fillRect(x(from), y, Math.max(x(to) - x(from), least), height);
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      bars.forEach((bar, i) => {
        const [top, thick] = [bbox.top + (i + 0.12) * each, 0.76 * each];
        const start = bar.spans.length ? bar.spans[0][0] : end;
        ctx.fillStyle = waiting;
        box(bar.arrival, start, top + 0.35 * thick, 0.3 * thick, 0);
        ctx.fillStyle = queueColour(bar.queue);
        for (const [since, until] of bar.spans) box(since, until, top, thick, 2);
        if (bar.start !== null && bar.pods > 1)
          diamond(ctx, x(bar.start), top + thick / 2, thick / 2, dark);
        ctx.fillStyle = bad;
        for (const t of bar.evicted) ctx.fillRect(x(t) - 1, top - 1, 3, thick + 2);
      });
    },
    describe(u) {
      const bar = bars[rowAt(u)];
      if (!bar) return "";
      const waited =
        bar.start === null ? "never started" : `waited ${duration(bar.start - bar.arrival)}`;
      const ran = bar.spans.map(([since, until]) => duration(until - since)).join(", then ");
      const lost = bar.evicted.length ? `\nevicted at ${bar.evicted.map(duration).join(", ")}` : "";
      const came = `came at ${duration(bar.arrival)}, ${waited}${ran && `, ran ${ran}`}`;
      return `${bar.name}\n${bar.pods} pods, queue ${bar.queue}\n${came}${lost}`;
    },
  });
}
function diamond(ctx, x, y, half, shade) {
  ctx.fillStyle = shade;
  ctx.beginPath();
  for (const [dx, dy] of [
    [0, -1],
    [0.7, 0],
    [0, 1],
    [-0.7, 0],
  ])
    ctx.lineTo(x + dx * half, y + dy * half);
  ctx.fill();
}

// The page: its elements name the chart they hold, the configuration and the queue

const DRAW = {
  utilisation: drawUtilisation,
  queue: drawQueue,
  waiting: drawWaiting,
  waits: drawWaits,
  fairness: drawFairness,
  heat: drawHeat,
  gantt: drawGantt,
};
function drawAll() {
  for (const host of document.querySelectorAll("[data-chart]")) {
    const { chart, conf, queue } = host.dataset;
    DRAW[chart](host, confs[conf], confs[conf]?.queues[queue]);
  }
  zoom(view.from, view.to);
}
for (const button of document.querySelectorAll("button[data-resource]")) {
  button.addEventListener("click", () => {
    view.resource = Number(button.dataset.resource);
    for (const each of document.querySelectorAll("button[data-resource]")) {
      each.setAttribute("aria-pressed", String(each.dataset.resource === button.dataset.resource));
    }
    drawAll();
  });
}
for (const button of document.querySelectorAll(".whole"))
  button.addEventListener("click", () => zoom(0, end));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
