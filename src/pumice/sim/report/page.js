// Legends, panels and buttons; draws everything.
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
  legend(document.getElementById("gantt-key"), [["waiting", "var(--waiting)"], ...colours, ["evicted", "var(--bad)"]]);
  each("gantt", drawGantt);
}
let pending = 0;
addEventListener("resize", () => { clearTimeout(pending); pending = setTimeout(drawAll, 120); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
drawAll();
