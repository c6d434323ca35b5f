// Long texts of a page in its address: behind the #, which a browser does not send to a server.
export const LONGEST = 8000; // characters of a fragment: what mail and chat programs pass on whole
const MOST = 1 << 20; // bytes that are unpacked

const through = (bytes, stream) => new Response(new Blob([bytes]).stream().pipeThrough(stream));
const base64 = (bytes) =>
  btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");
const unbase64 = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

async function unpacked(bytes) {
  const reader = through(bytes, new DecompressionStream("deflate-raw")).body.getReader();
  const parts = [];
  for (let size = 0; ;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(parts).text();
    size += value.length;
    if (size > MOST) throw new Error("too long");
    parts.push(value);
  }
}
/** The texts in the address; none if there are none, or somebody damaged the link. */
export async function readShared() {
  const match = location.hash.match(/^#t=([\w-]+)$/);
  if (!match) return {};
  try {
    const found = JSON.parse(await unpacked(unbase64(match[1])));
    return Object.fromEntries(
      Object.entries(found).filter(([, value]) => typeof value === "string"),
    );
  } catch {
    return {};
  }
}
/** Put texts into the address; returns whether they fit. */
export async function share(texts) {
  const given = Object.fromEntries(Object.entries(texts).filter(([, value]) => value));
  let hash = "";
  if (Object.keys(given).length) {
    const packed = through(
      new TextEncoder().encode(JSON.stringify(given)),
      new CompressionStream("deflate-raw"),
    );
    hash = `#t=${base64(new Uint8Array(await packed.arrayBuffer()))}`;
  }
  const fits = hash.length <= LONGEST;
  history.replaceState(null, "", `${location.pathname}${location.search}${fits ? hash : ""}`);
  return fits;
}
