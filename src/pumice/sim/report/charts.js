// Charts drawn as SVG.
// Charts

function lines(host, height, label, vertical, series, format, ceiling, floor) {
  const box = frame(host, height, label, vertical);
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
  const unit = data.resources[state.resource];
  const whole = `${number(data.totals[state.resource] / unit.scale)} ${unit.unit}`;
  const vertical = `${unit.name} in use, % of ${whole}`;
  lines(slot(host), 240, "part of the cluster in use over time", vertical, series, percent, 1.02);
}
function drawFairness(host) {
  const series = confs.map((conf, i) => ({ name: conf.name, values: conf.fairness, colour: `var(--c${i})` }));
  legend(host, confs.length > 1 ? series.map((s) => [s.name, s.colour]) : []);
  lines(slot(host), 180, "fairness over time", "Jain's index, 1 = fair", series, (v) => number(v), 1.02);
}
function drawLengths(host, conf) {
  const series = conf.queues.map((q) => ({ name: q.name, values: q.waiting, colour: queueColour(q.name), width: 1.5 }));
  series.unshift({ name: "all queues", values: conf.lengths, colour: "var(--soft)", width: 1, dash: "3 3" });
  const ceiling = Math.max(...confs.map((c) => top([c.lengths]))) * 1.08 || 1;
  lines(host, 240, `jobs waiting, ${conf.name}`, "jobs that wait", series, number, ceiling);
}

function drawQueue(host, conf, queue) {
  const r = state.resource;
  const others = confs.map((c) => c.queues.find((q) => q.name === queue.name));
  const limit = data.totals[r] / data.resources[r].scale;
  const cap = queue.capability[r];
  const reach = Math.max(...others.map((q) => Math.max(top([q.allocated[r], q.due[r]]), q.guarantee[r])));
  const high = Math.min(Math.max(reach, cap !== null && cap <= 2 * reach ? cap : 0) * 1.1, limit * 1.05) || 1;
  const box = frame(host, 160, `what queue ${queue.name} holds, ${conf.name}`, data.resources[r].unit);
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
  const box = frame(slot(host), 250, "jobs that waited no longer than", "% of the jobs that started", "waited at most");
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
    const first = Math.max(0, conf.waits.filter((t) => t <= least).length - 1); // no wall at the left edge
    const points = conf.waits.map((t, k) => `${x(t).toFixed(1)} ${y(k / n).toFixed(1)}`).slice(first);
    const d = points.length ? `M${points.join("L")}` : "";
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
