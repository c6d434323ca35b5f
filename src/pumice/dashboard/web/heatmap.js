// A map of nodes on a canvas: one cell a node, in groups; it stays smooth with many thousands.
import {
  html,
  useEffect,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "./vendor/htm-3.1.1/htm-preact.min.js";
import { colour, showTip } from "./parts.js";

const HEAD = 20;
const GAP = 14;
const rgb = (name) =>
  colour(name)
    .match(/[\d.]+/g)
    .slice(0, 3)
    .map(Number);

/** Where every cell lies: groups side by side, rows of cells inside each, of one size for all. */
export function layout(groups, width, most = 46) {
  const total = groups.reduce((sum, group) => sum + group.rows.length, 0);
  const room = Math.max(320, Math.min(innerHeight - 320, 640));
  let size = Math.max(
    3,
    Math.min(most, Math.floor(Math.sqrt((width * room) / Math.max(1, total)))),
  );
  for (; ; size -= 1) {
    const placed = place(groups, width, size);
    if (placed.height <= room * 1.15 || size <= 4) return { ...placed, size };
  }
}
function place(groups, width, size) {
  const blocks = [];
  let [x, y, high] = [0, 0, 0];
  const single = groups.length === 1;
  for (const group of groups) {
    const n = group.rows.length;
    const across = single
      ? Math.max(1, Math.floor(width / size))
      : Math.max(
          1,
          Math.min(
            n,
            Math.floor(width / size),
            Math.max(Math.ceil(Math.sqrt(n * 2.2)), Math.ceil(96 / size)),
          ),
        );
    const wide = Math.max(across * size, Math.min(96, width));
    const tall = HEAD + Math.ceil(n / across) * size;
    if (x && x + wide > width) {
      x = 0;
      y += high + GAP;
      high = 0;
    }
    blocks.push({ group, x, y, across, wide });
    x += wide + GAP;
    high = Math.max(high, tall);
  }
  return { blocks, height: y + high };
}

let maps = 0;
/** ``groups`` are {name, rows}; ``part`` returns the fill of a row from 0 to 1 or null, ``shade`` a
 *  colour instead of it; ``mark`` whether a node is closed. */
export function HeatMap({ groups, part, shade, mark, words, onOpen, label }) {
  const canvas = useRef(null);
  const [id] = useState(() => `map${(maps += 1)}`);
  const [width, setWidth] = useState(0);
  const [at, setAt] = useState(-1);
  const [theme, setTheme] = useState(0);
  const place = useRef(null);
  useLayoutEffect(() => {
    const host = canvas.current.parentElement;
    const look = () => setWidth(host.clientWidth);
    look();
    const watcher = new ResizeObserver(look);
    watcher.observe(host);
    const again = () => setTheme((n) => n + 1);
    addEventListener("theme", again);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
    return () => {
      watcher.disconnect();
      removeEventListener("theme", again);
    };
  }, []);
  useEffect(() => {
    if (!width) return;
    const started = performance.now();
    place.current = layout(groups, width);
    paint(canvas.current, place.current, width, { part, shade, mark }, at);
    canvas.current.dataset.drawn = String(performance.now() - started);
  }, [groups, part, shade, mark, width, theme, at]);
  const rowAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    for (const { group, x: left, y: top, across } of place.current?.blocks || []) {
      const [column, row] = [
        Math.floor((x - left) / place.current.size),
        Math.floor((y - top - HEAD) / place.current.size),
      ];
      if (column >= 0 && column < across && row >= 0) {
        const hit = group.rows[row * across + column];
        if (hit !== undefined) return hit;
      }
    }
    return -1;
  };
  const rows = useMemo(() => groups.flatMap((group) => group.rows), [groups]);
  const named = useMemo(
    () =>
      rows.map(
        (row) => html`
          <li role="option" id=${`${id}-${row}`} key=${row} aria-selected="false">
            ${words(row).replaceAll("\n", ", ")}
          </li>
        `,
      ),
    [rows, part],
  );
  const flat = () => place.current.blocks.flatMap(({ group }) => group.rows);
  const point = (row) => {
    setAt(row);
    const cell = where(place.current, row);
    const box = canvas.current.getBoundingClientRect();
    showTip(words(row), box.left + cell.x + place.current.size, box.top + cell.y);
  };
  const keys = (event) => {
    const rows = flat();
    const now = rows.indexOf(at);
    const across = place.current.blocks.find(({ group }) => group.rows.includes(at))?.across || 1;
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[event.key];
    if (event.key === "Enter" && at >= 0) {
      showTip("");
      onOpen(at);
    }
    if (event.key === "Escape") {
      setAt(-1);
      showTip("");
    }
    if (step === undefined) return;
    event.preventDefault();
    point(rows[Math.min(Math.max(now + step, 0), rows.length - 1)]);
  };
  return html`
    <div class="map">
      <canvas
        ref=${canvas}
        role="listbox"
        tabindex="0"
        aria-label=${`${label}. Arrow keys move from node to node, Enter opens one.`}
        aria-activedescendant=${at >= 0 ? `${id}-${at}` : undefined}
        onMouseMove=${(e) => {
          const row = rowAt(e);
          showTip(row < 0 ? "" : words(row), e.clientX, e.clientY);
          canvas.current.style.cursor = row < 0 ? "" : "pointer";
        }}
        onMouseLeave=${() => showTip("")}
        onClick=${(e) => {
          const row = rowAt(e);
          if (row >= 0) {
            showTip("");
            onOpen(row);
          }
        }}
        onKeyDown=${keys}
        onBlur=${() => {
          setAt(-1);
          showTip("");
        }}>
        <ul role="presentation">
          ${named}
        </ul>
      </canvas>
    </div>
  `;
}
function where(placed, row) {
  for (const { group, x, y, across } of placed.blocks) {
    const i = group.rows.indexOf(row);
    if (i >= 0)
      return {
        x: x + (i % across) * placed.size,
        y: y + HEAD + Math.floor(i / across) * placed.size,
      };
  }
  return { x: 0, y: 0 };
}
function paint(canvas, placed, width, { part, shade, mark }, at) {
  const scale = devicePixelRatio || 1;
  const { size } = placed;
  Object.assign(canvas, { width: width * scale, height: Math.max(1, placed.height) * scale });
  Object.assign(canvas.style, { width: `${width}px`, height: `${placed.height}px` });
  const ctx = canvas.getContext("2d");
  ctx.scale(scale, scale);
  const [idle, full] = [rgb("idle"), rgb("full")];
  const ramp = Array.from(
    { length: 65 },
    (_, i) => `rgb(${idle.map((c, k) => Math.round(c + ((full[k] - c) * i) / 64)).join(" ")})`,
  );
  const [line, soft, bad, ink] = ["line", "soft", "bad", "ink"].map(colour);
  const inner = size - (size > 8 ? 2 : size > 4 ? 1 : 0.5);
  const colours = new Map();
  for (const { group, x, y, across, wide } of placed.blocks) {
    ctx.fillStyle = soft;
    ctx.font = '12px system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif';
    ctx.fillText(fitted(ctx, group.title, wide), x, y + 13);
    group.rows.forEach((row, i) => {
      const [left, top] = [x + (i % across) * size, y + HEAD + Math.floor(i / across) * size];
      const given = shade?.(row);
      const value = part(row);
      if (given && !colours.has(given)) colours.set(given, colour(given));
      if (given) ctx.fillStyle = colours.get(given);
      else
        ctx.fillStyle =
          value === null ? "transparent" : ramp[Math.round(Math.min(1, Math.max(0, value)) * 64)];
      ctx.fillRect(left, top, inner, inner);
      if (value === null || (size > 8 && !given)) {
        ctx.strokeStyle = line;
        ctx.lineWidth = 1;
        ctx.strokeRect(left + 0.5, top + 0.5, inner - 1, inner - 1);
      }
      if (mark(row)) {
        ctx.strokeStyle = bad;
        ctx.lineWidth = size > 10 ? 2 : 1;
        ctx.beginPath();
        ctx.moveTo(left + 1, top + inner - 1);
        ctx.lineTo(left + inner - 1, top + 1);
        ctx.stroke();
      }
      if (row === at) {
        ctx.strokeStyle = ink;
        ctx.lineWidth = 2;
        ctx.strokeRect(left, top, inner, inner);
      }
    });
  }
}
function fitted(ctx, text, room) {
  let shown = text;
  for (let n = text.length; n > 1 && ctx.measureText(shown).width > room; n -= 1)
    shown = `${text.slice(0, n - 1)}…`;
  return shown;
}
