// Charts over time, drawn by uPlot: steps, quiet axes, one cursor for all charts of a page.
import { html, useEffect, useRef } from "./vendor/htm-3.1.1/htm-preact.min.js";
import { duration } from "./format.js";
import { colour, showTip } from "./parts.js";

const FONT = '11.5px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif';
const DASHES = [[], [7, 3], [2, 2], [9, 3, 2, 3]];
const MINUTES = [1, 2, 5, 10, 15, 30];
const STEPS = [
  ...MINUTES,
  ...MINUTES.map((n) => 60 * n),
  ...[1, 2, 3, 6, 12].map((n) => 3600 * n),
  ...[1, 2, 5, 10, 20, 50, 100].map((n) => 86400 * n),
];

/** ``lines`` are {label, ys, colour, dash, fill}; ``words`` writes a moment, ``format`` a value. */
export function Chart({
  label,
  xs,
  lines,
  format,
  words = duration,
  range = [0, 1],
  height = 200,
  group = "time",
  onMove,
  cursor,
}) {
  const host = useRef(null);
  const kept = useRef(null);
  const names = lines.map((line) => `${line.label}${line.colour}`).join("|");
  const shape = `${names} ${height} ${range}`;
  useEffect(() => {
    const make = () => {
      kept.current?.destroy();
      kept.current = draw(host.current, {
        label,
        xs,
        lines,
        format,
        words,
        range,
        height,
        group,
        onMove,
      });
    };
    make();
    const watcher = new ResizeObserver(() => {
      if (
        host.current?.clientWidth &&
        kept.current &&
        kept.current.width !== host.current.clientWidth
      )
        kept.current.setSize({ width: host.current.clientWidth, height });
    });
    watcher.observe(host.current);
    addEventListener("theme", make);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", make);
    return () => {
      watcher.disconnect();
      removeEventListener("theme", make);
      dark.removeEventListener("change", make);
      kept.current?.destroy();
      kept.current = null;
    };
  }, [shape]);
  useEffect(() => {
    kept.current?.setData([xs, ...lines.map((line) => line.ys)]);
  }, [xs, lines]);
  useEffect(() => {
    if (kept.current && cursor !== undefined) {
      kept.current.moment = cursor;
      kept.current.redraw(false);
    }
  }, [cursor]);
  return html`<div class="chart" ref=${host}></div>`;
}

function draw(host, { label, xs, lines, format, words, range, height, group, onMove }) {
  const stepped = uPlot.paths.stepped({ align: 1 });
  const axis = {
    font: FONT,
    stroke: colour("soft"),
    ticks: { stroke: colour("line"), size: 4 },
    gap: 4,
  };
  const tell = (u) => {
    const at = u.cursor.idx;
    if (u.cursor.left < 0 || at === null || at === undefined || u !== pointed) return;
    const over = u.over.getBoundingClientRect();
    const values = lines.map((line) => `${line.label}: ${format(line.ys[at] ?? null)}`);
    showTip([words(u.data[0][at]), ...values].join("\n"), over.left + u.cursor.left, over.top + 20);
    onMove?.(u.posToVal(u.cursor.left, "x"));
  };
  const chart = new uPlot(
    {
      width: Math.max(host.clientWidth, 200),
      height,
      legend: { show: false },
      padding: [8, 30, 0, 0], // half a label of the time axis
      scales: { x: { time: false }, y: { range } },
      axes: [
        {
          ...axis,
          grid: { show: false },
          size: 26,
          space: 70,
          incrs: STEPS,
          values: (u, splits) => splits.map(words),
        },
        {
          ...axis,
          grid: { stroke: colour("line"), width: 1 },
          size: 52,
          space: 28,
          values: (u, splits) => splits.map(format),
        },
      ],
      series: [
        {},
        ...lines.map((line, i) => ({
          label: line.label,
          stroke: colour(line.colour),
          dash: line.dash ?? DASHES[i % 4],
          width: 1.75,
          paths: stepped,
          points: { show: false },
          fill: line.fill && `color-mix(in srgb, ${colour(line.colour)} 14%, transparent)`,
          spanGaps: false,
        })),
      ],
      cursor: {
        y: false,
        points: { show: false },
        drag: { setScale: true, dist: 8 },
        sync: { key: group, scales: ["x", null] },
      },
      hooks: {
        setCursor: [tell],
        draw: [
          (u) => {
            if (u.moment === undefined || u.moment === null) return;
            const x = u.valToPos(u.moment, "x", true);
            u.ctx.save();
            u.ctx.strokeStyle = colour("accent");
            u.ctx.lineWidth = 2 * devicePixelRatio;
            u.ctx.beginPath();
            u.ctx.moveTo(x, u.bbox.top);
            u.ctx.lineTo(x, u.bbox.top + u.bbox.height);
            u.ctx.stroke();
            u.ctx.restore();
          },
        ],
        ready: [
          (u) => {
            for (const [name, value] of [
              ["role", "img"],
              ["aria-label", label],
              ["tabindex", "0"],
            ])
              u.root.setAttribute(name, value);
            u.over.addEventListener("pointerenter", () => {
              pointed = u;
            });
            u.over.addEventListener("pointerleave", () => {
              pointed = null;
              showTip("");
            });
            u.root.addEventListener("focus", () => {
              pointed = u;
            });
            u.root.addEventListener("blur", () => {
              pointed = null;
              showTip("");
            });
            u.root.addEventListener("keydown", (event) => {
              const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
              if (!step) return;
              event.preventDefault();
              const left = u.cursor.left < 0 ? u.over.clientWidth / 2 : u.cursor.left;
              u.setCursor({
                left: Math.min(Math.max(left + step * 8, 0), u.over.clientWidth),
                top: 10,
              });
            });
          },
        ],
      },
    },
    [xs, ...lines.map((line) => line.ys)],
    host,
  );
  return chart;
}
let pointed = null;

export const Legend = ({ entries }) => html`
  <div class="legend">
    ${entries.map(
      ([words, name, dash]) => html`
        <span class=${`line ${dash ? `dash${dash}` : ""}`}>
          <i class=${`stroke ${name}`} aria-hidden="true"></i>
          ${words}
        </span>
      `,
    )}
  </div>
`;
