// Which configuration is better?
import { html, useEffect, useMemo, useRef, useState } from "../vendor/htm-3.1.1/htm-preact.min.js";
import { Chart, Legend } from "../charts.js";
import { useDocument } from "../data.js";
import { duration, number, percent, plural, resourceName } from "../format.js";
import { HeatMap } from "../heatmap.js";
import {
  colour,
  Empty,
  Needs,
  Problem,
  query,
  queueColour,
  QueueName,
  setQuery,
  ShortTable,
  showTip,
  Tabs,
} from "../parts.js";

// a difference of two parts is not a part: 72 % to 78 % is 6 points
const points = (part) => `${number(100 * part, 1)} points`;
// Figures: how they are written, whether more of them is better, and how a difference is written
// if otherwise
const FIGURES = [
  [
    "finished",
    "jobs finished",
    (f) => f.finished,
    (v, run) => (run ? `${number(v)} of ${number(run.jobCount)}` : number(v)),
    1,
  ],
  ["makespan", "makespan", (f) => f.makespan, duration, -1],
  ["mean", "mean wait", (f) => f.wait?.mean, duration, -1],
  ["p95", "95th percentile wait", (f) => f.wait?.p95, duration, -1],
  [
    "use",
    "utilisation",
    (f) => Math.max(...Object.values(f.utilisation || { none: 0 })),
    percent,
    1,
    points,
  ],
  ["fair", "fairness", (f) => f.fairness?.mean, (v) => number(v, 3), 1],
  ["evictions", "evictions", (f) => f.evictions, (v) => number(v), -1],
];
const known = (value) => value !== null && value !== undefined && !Number.isNaN(value);

const written = (value, write, run) => (known(value) ? write(value, run) : "–");
function Differences({ a, b }) {
  // figures over other jobs are neither better nor worse: who leaves jobs waiting has short waits
  const alike = a.figures.finished === b.figures.finished;
  const against = ([key, , of, write, way, writeChange = write] = []) => {
    if (!of) return { kind: "right figure" }; // of the title
    const [x, y] = [of(a.figures), of(b.figures)];
    const both = known(x) && known(y);
    if (!both || !(alike || key === "finished"))
      return { words: both ? "over other jobs" : "–", kind: "right figure soft" };
    if (x === y) return { words: "the same", kind: "right figure soft" };
    const worth = (y - x) * way > 0 ? "better" : "worse";
    const words = `${y > x ? "+" : "−"}${writeChange(Math.abs(y - x))}, ${worth}`;
    return { words, kind: `right figure ${worth}` };
  };
  return html`
    <section>
      <h2>Differences first</h2>
      <${ShortTable}
        label="Differences"
        kind="differences"
        rows=${FIGURES}
        columns=${[
          ["", ([, name]) => name, "head"],
          [`A: ${a.id}`, ([, , of, write]) => written(of(a.figures), write, a), "right figure"],
          [`B: ${b.id}`, ([, , of, write]) => written(of(b.figures), write, b), "right figure"],
          ["B against A", (figure) => against(figure).words, (figure) => against(figure).kind],
        ]} />
    </section>
  `;
}

/** What was in use when: the cells of a run's map at a moment. */
function cellsAt(run, at) {
  const { heat } = run.charts;
  if (!run.bytes) run.bytes = Uint8Array.from(atob(heat.cells), (c) => c.charCodeAt(0));
  const end = run.edges.at(-1);
  const column = Math.min(heat.columns - 1, Math.max(0, Math.floor((at / end) * heat.columns)));
  return (row) => {
    const cell = run.bytes[row * heat.columns + column];
    return cell === 255 ? null : cell / 254;
  };
}
function Moment({ run, at, label }) {
  const { heat } = run.charts;
  const kind = heat.rows.length === run.nodes ? "node" : "group";
  const groups = useMemo(
    () => [
      {
        title: `${label}${plural(heat.rows.length, kind)}`,
        rows: heat.rows.map((_, i) => i),
      },
    ],
    [run],
  );
  const part = useMemo(() => cellsAt(run, at), [run, at]);
  const counts = useMemo(() => {
    if (!run.jobs) return null;
    let [runs, waits, over] = [0, 0, 0];
    const until = at + 0.06; // the edges of the time axis are rounded to tenths of a second
    run.jobs.arrival.forEach((came, i) => {
      if (came > until) return;
      const [start, end] = [run.jobs.start[i], run.jobs.end[i]];
      if (end !== null && end <= until) over += 1;
      else if (start !== null && start <= until) runs += 1;
      else waits += 1;
    });
    return { runs, waits, over };
  }, [run, at]);
  return html`
    <div>
      ${
        counts &&
        html`
          <p class="figure">
            ${plural(
              counts.runs,
              "job",
            )} ran, ${number(counts.waits)} waited, ${number(counts.over)} had
            ended
          </p>
        `
      }
      <${HeatMap}
        groups=${groups}
        part=${part}
        mark=${() => false}
        words=${(i) => {
          const used = part(i) === null ? "has no" : `${percent(part(i))} of`;
          return `${heat.rows[i]}\n${used} ${heat.resource}`;
        }}
        label=${`${heat.resource} in use at ${duration(at)}`}
        onOpen=${() => {}} />
    </div>
  `;
}

/** Jobs as rows, time from left to right; a click or a drag moves the moment. */
function Gantt({ run, at, onMove }) {
  const canvas = useRef(null);
  const [width, setWidth] = useState(0);
  const rows = useMemo(() => {
    const { bars } = run.charts.gantt;
    const all = run.jobs;
    if (!all || all.job.length <= bars.length)
      return bars.map((bar) => ({
        name: bar.name,
        queue: bar.queue,
        pods: bar.pods,
        arrival: bar.arrival,
        spans: bar.spans,
        evicted: bar.evicted,
      }));
    return all.job.map((name, i) => ({
      name,
      queue: all.queue[i],
      pods: all.pods[i],
      arrival: all.arrival[i],
      spans: all.start[i] === null ? [] : [[all.start[i], all.end[i] ?? run.edges.at(-1)]],
      evicted: [],
    }));
  }, [run]);
  const each = Math.max(1, Math.min(14, Math.floor(460 / Math.max(1, rows.length))));
  const height = Math.max(40, Math.min(rows.length * each, 520));
  const step = rows.length * each > height ? height / rows.length : each;
  const end = run.edges.at(-1) || 1;
  useEffect(() => {
    const host = canvas.current.parentElement;
    const look = () => setWidth(host.clientWidth);
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(host);
    return () => watcher.disconnect();
  }, []);
  useEffect(() => {
    if (!width) return;
    const scale = devicePixelRatio || 1;
    Object.assign(canvas.current, { width: width * scale, height: height * scale });
    Object.assign(canvas.current.style, { width: `${width}px`, height: `${height}px` });
    const ctx = canvas.current.getContext("2d");
    ctx.scale(scale, scale);
    const x = (t) => (t / end) * width;
    const [waits, bad, line] = ["soft", "bad", "accent"].map(colour);
    rows.forEach((row, i) => {
      const top = i * step;
      const thick = Math.max(0.7, step * 0.8);
      ctx.globalAlpha = 0.45;
      ctx.fillStyle = waits;
      ctx.fillRect(
        x(row.arrival),
        top + 0.35 * thick,
        Math.max(0, x(row.spans[0]?.[0] ?? end) - x(row.arrival)),
        Math.max(0.5, 0.3 * thick),
      );
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour(`c${queueColour(row.queue)}`);
      for (const [from, to] of row.spans)
        ctx.fillRect(x(from), top, Math.max(1, x(to) - x(from)), thick);
      ctx.fillStyle = bad;
      for (const t of row.evicted) ctx.fillRect(x(t) - 1, top, 2, thick);
    });
    ctx.fillStyle = line;
    ctx.fillRect(x(at) - 1, 0, 2, height);
  }, [rows, width, at]);
  const move = (event) => {
    const box = canvas.current.getBoundingClientRect();
    onMove(Math.min(end, Math.max(0, ((event.clientX - box.left) / width) * end)));
  };
  const words = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const row = rows[Math.floor((event.clientY - box.top) / step)];
    if (!row) return "";
    const waited = row.spans.length
      ? `waited ${duration(row.spans[0][0] - row.arrival)}`
      : "never started";
    const came = `came at ${duration(row.arrival)}, ${waited}`;
    return `${row.name}\n${plural(row.pods, "pod")}, queue ${row.queue}\n${came}`;
  };
  return html`
    <canvas
      ref=${canvas}
      class="gantt"
      role="img"
      aria-label=${`${plural(rows.length, "job")} over time; the slider above moves the moment`}
      onPointerDown=${(e) => {
        canvas.current.setPointerCapture(e.pointerId);
        move(e);
      }}
      onPointerMove=${(e) => {
        if (e.buttons) move(e);
        showTip(words(e), e.clientX, e.clientY);
      }}
      onPointerLeave=${() => showTip("")}></canvas>
  `;
}

function Compared({ a, b }) {
  const runs = b ? [a, b] : [a];
  const longest = runs.reduce((x, y) => (y.edges.at(-1) > x.edges.at(-1) ? y : x));
  const end = longest.edges.at(-1) || 1;
  const [at, setAt] = useState(Number(query().get("t")) || end / 3);
  const chosen = query().get("resource") || a.resources[a.main]?.name;
  const move = (time) => {
    setAt(time);
    clearTimeout(move.timer);
    move.timer = setTimeout(() => setQuery({ t: Math.round(time) }), 300);
  };
  const xs = longest.edges;
  /** Values of a run on the edges of the longest: each holds until the next edge of its own. */
  const on = (run, values) => {
    const own = run.edges;
    let i = 0;
    return xs.map((x) => {
      while (i + 1 < own.length && own[i + 1] <= x) i += 1;
      return x > own.at(-1) ? null : values[Math.min(i, values.length - 1)];
    });
  };
  const lines = (of) =>
    runs.map((run, i) => ({
      label: `${"AB"[i]}: ${run.id}`,
      ys: on(run, of(run)),
      colour: `c${i}`,
    }));
  const index = (run) =>
    Math.max(
      0,
      run.resources.findIndex((r) => r.name === chosen),
    );
  const use = useMemo(() => lines((run) => run.charts.utilisation[index(run)]), [a, b, chosen]);
  const waiting = useMemo(() => lines((run) => run.charts.lengths), [a, b]);
  const fair = useMemo(() => lines((run) => run.charts.fairness), [a, b]);
  const most = Math.max(1, ...waiting.flatMap((line) => line.ys.filter((v) => v !== null)));
  const legend = html`<${Legend} entries=${use.map((line, i) => [line.label, line.colour, i])} />`;
  return html`
    ${b && html`<${Differences} a=${a} b=${b} />`}
    <section>
      <h2>Over time</h2>
      <div class="tools">
        <${Tabs}
          label="Resource"
          value=${chosen}
          options=${a.resources.map((r) => [r.name, resourceName(r)])}
          onChange=${(resource) => setQuery({ resource })} />
      </div>
      ${legend}
      <h3>${chosen} in use</h3>
      <${Chart}
        label=${`Part of ${chosen} in use over time`}
        xs=${xs}
        lines=${use}
        format=${percent}
        range=${[0, 1.02]}
        height=${170}
        group="sim"
        cursor=${at} />
      <h3>Pending jobs</h3>
      <${Chart}
        label="Waiting jobs over time"
        xs=${xs}
        lines=${waiting}
        format=${(v) => number(v)}
        range=${[0, most * 1.08]}
        height=${150}
        group="sim"
        cursor=${at} />
      ${
        fair.some((line) => line.ys.some((v) => v !== null)) &&
        html`
          <h3>Fairness</h3>
          <${Chart}
            label="Fairness over time"
            xs=${xs}
            lines=${fair}
            format=${(v) => number(v)}
            range=${[0, 1.02]}
            height=${130}
            group="sim"
            cursor=${at} />
        `
      }
    </section>
    <section>
      <h2>
        The cluster at${" "}
        <span class="figure">${duration(at)}</span>
      </h2>
      <label class="scrub">
        <span class="skipword">moment</span>
        <input
          type="range"
          aria-label="Moment"
          min="0"
          max=${end}
          step=${end / 1000}
          value=${at}
          onInput=${(e) => move(Number(e.target.value))} />
      </label>
      <div class=${b ? "two" : ""}>
        ${runs.map(
          (run, i) => html`
            <${Moment} run=${run} at=${at} label=${b ? `${"AB"[i]} · ` : ""} key=${run.id} />
          `,
        )}
      </div>
    </section>
    <section>
      <h2>Jobs</h2>
      <p class="key">
        ${a.queues.map(
          (queue) => html`<${QueueName} queue=${queue} plain=${true} />`,
        )}
        <span>
          <i class="waitline"></i>
          waiting
        </span>
      </p>
      <div class=${b ? "two" : ""}>
        ${runs.map(
          (run, i) => html`
            <div key=${run.id}>
              ${b && html`<h3>${"AB"[i]}: ${run.id}</h3>`}
              <${Gantt} run=${run} at=${at} onMove=${move} />
            </div>
          `,
        )}
      </div>
    </section>
  `;
}

function Table({ runs, a, b }) {
  const choose = (key) => (event) =>
    setQuery({ [key]: event.target.checked ? event.target.value : "" });
  return html`
    <${ShortTable}
      label="Runs"
      rows=${runs}
      keyOf=${(run) => run.id}
      columns=${[
        [
          "A",
          (run) => html`
            <input
              type="radio"
              name="a"
              aria-label=${`A: ${run.id}`}
              value=${run.id}
              checked=${run.id === a}
              onChange=${choose("a")} />
          `,
        ],
        [
          "B",
          (run) => html`
            <input
              type="checkbox"
              name="b"
              aria-label=${`B: ${run.id}`}
              value=${run.id}
              checked=${run.id === b}
              disabled=${run.id === a}
              onChange=${choose("b")} />
          `,
        ],
        [
          "run",
          (run) => html`
            ${run.id}${
              run.storm &&
              html`
                ${" "}
                <span class="state failed">does not settle</span>
              `
            }
          `,
          "name",
        ],
        ["trace", (run) => run.trace],
        ["jobs", (run) => number(run.jobCount), "right figure"],
        ["nodes", (run) => number(run.nodes), "right figure"],
        ...FIGURES.map(([, name, of, write]) => [
          name,
          (run) => written(of(run.figures), write),
          "right figure",
        ]),
      ]} />
  `;
}

export function Simulations() {
  const list = useDocument("/api/simulations", "none");
  const params = query();
  const [a, b] = [params.get("a") || list.data?.runs[0]?.id || "", params.get("b") || ""];
  const one = useDocument(a ? `/api/simulations/${encodeURIComponent(a)}` : null, "none");
  const other = useDocument(b ? `/api/simulations/${encodeURIComponent(b)}` : null, "none");
  return html`
    <h1 tabindex="-1">Simulations</h1>
    <${Needs} of=${list} what="Looking for runs">
      ${(data) => {
        if (!data.runs.length)
          return html`
            <${Empty} title="No simulation yet">
              <p>Run one, then show its folder:</p>
              <p><code>pumice sim --trace examples/sim/synthetic.yaml --dir runs/first</code></p>
              <p><code>pumice ui --sim runs</code></p>
            <//>
          `;
        return html`
          <section>
            <h2>Runs</h2>
            <${Table} runs=${data.runs} a=${a} b=${b} />
            <p class="soft">A is shown; tick B to see two side by side.</p>
          </section>
          ${
            one.error
              ? html`<${Problem} error=${one.error} />`
              : one.data && (!b || other.data)
                ? html`
                    <${Compared} a=${one.data} b=${b ? other.data : null} key=${`${a} ${b}`} />
                  `
                : other.error
                  ? html`<${Problem} error=${other.error} />`
                  : html`
                      <p class="loading">
                        <i></i>
                        Reading the run …
                      </p>
                    `
          }
        `;
      }}
    <//>
  `;
}
