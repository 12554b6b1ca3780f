/** The view, its subject and its filters, as the address has them: `#/connectors/orders?task=3`. */

/** The parts of the path, and the filters. */
export function readRoute() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/").filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** The address of a view. */
export function addressOf(parts, query = {}) {
  const kept = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(kept).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${text ? `?${text}` : ""}`;
}

/** Go to a view. */
export function go(parts, query = {}) {
  location.hash = addressOf(parts, query);
}

/** Change filters of the view that is open; the way back does not stop at each letter that is typed. */
export function refine(changes) {
  const { parts, query } = readRoute();
  const next = addressOf(parts, { ...Object.fromEntries(query), ...changes });
  history.replaceState(null, "", next);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
