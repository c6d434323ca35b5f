// Amounts, times and names in readable form.

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function number(value, digits) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  return value.toLocaleString("en", {
    maximumFractionDigits: digits ?? (size >= 100 ? 0 : size >= 10 ? 1 : 2),
  });
}

/** A resource as a heading: cpu, memory, gpu. */
export const resourceName = (resource) =>
  resource.name.includes("/") ? resource.name.split("/").at(-1) : resource.name;

/** The unit in which all amounts of a column are written, chosen by the largest. */
export function unitFor(resource, largest) {
  if (resource.unit !== "bytes") return { size: 1, name: resource.unit };
  const power = Math.min(Math.max(Math.floor(Math.log2(largest || 1) / 10), 0), BYTES.length - 1);
  return { size: 1024 ** power, name: BYTES[power] };
}
export function amount(resource, value, largest) {
  if (value === null || value === undefined) return "no limit";
  const unit = unitFor(resource, largest ?? value);
  return `${number(value / unit.size)} ${unit.name}`;
}
/** "12 of 32 cpu": both in the unit of the whole. */
export function partOf(resource, part, whole) {
  const unit = unitFor(resource, whole);
  return `${number(part / unit.size)} of ${number(whole / unit.size)} ${unit.name}`;
}
/** A list of amounts as one text: "2 cpu, 8 GiB". Nothing is left out but zeros. */
export const amounts = (resources, values) =>
  resources
    .map((resource, i) =>
      values[i] && resource.name !== "pods" ? amount(resource, values[i]) : "",
    )
    .filter(Boolean)
    .join(", ") || "nothing";

export const percent = (part) =>
  part === null || part === undefined || Number.isNaN(part)
    ? "–"
    : `${number(100 * part, part > 0 && part < 0.1 ? 1 : 0)} %`;

const UNITS = [
  [86400, "d"],
  [3600, "h"],
  [60, "min"],
  [1, "s"],
];
/** A span of time in its largest unit, in two where one alone would be coarse. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  const left = Math.max(0, Math.round(seconds));
  const at = UNITS.findIndex(([size]) => left >= size);
  if (at < 0) return "0 s";
  const [size, name] = UNITS[at];
  const whole = Math.floor(left / size);
  const next = UNITS[at + 1];
  const rest = next && whole < 10 && at < 3 ? Math.floor((left % size) / next[0]) : 0;
  return rest ? `${whole} ${name} ${rest} ${next[1]}` : `${whole} ${name}`;
}
/** A span of time in its largest unit alone, for columns. */
export const coarse = (seconds) => duration(seconds).split(" ").slice(0, 2).join(" ");
export const exact = (seconds) => `${number(seconds, 3)} s`;
export const milliseconds = (seconds) =>
  seconds === null || seconds === undefined
    ? "–"
    : seconds >= 1
      ? `${number(seconds)} s`
      : `${number(seconds * 1000)} ms`;

const CLOCK = new Intl.DateTimeFormat("en-GB", {
  hour: "2-digit",
  minute: "2-digit",
  second: "2-digit",
});
const DAY = new Intl.DateTimeFormat("en-GB", {
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
});
export const clock = (epoch) => CLOCK.format(new Date(epoch * 1000));
export const moment = (epoch, now) =>
  Math.abs(now - epoch) < 43200 ? clock(epoch) : DAY.format(new Date(epoch * 1000));
/** Hours and minutes alone, for an axis. */
export const hour = (epoch) => clock(epoch).slice(0, 5);
export const utc = (epoch) => `${new Date(epoch * 1000).toISOString().slice(0, 19)}Z`;
export const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
const ORDINALS = ["first", "second", "third", "fourth", "fifth"];
const ENDINGS = ["th", "st", "nd", "rd"];
const ending = (n) => ([11, 12, 13].includes(n % 100) ? "th" : (ENDINGS[n % 10] ?? "th"));
/** "first", "second" … "6th", "21st". */
export const ordinal = (n) => ORDINALS[n - 1] ?? `${number(n)}${ending(n)}`;
/** A capital letter, unless a text begins with a name, and a full stop. */
export const sentence = (text) =>
  text
    ? (text.split(" ")[0].includes("/") ? text[0] : text[0].toUpperCase()) +
      text.slice(1) +
      (/[.?!]$/.test(text) ? "" : ".")
    : "";
