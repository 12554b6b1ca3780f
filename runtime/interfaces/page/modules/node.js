/** Requests to the node: each path is relative to the page, so that a proxy may put both under any prefix. */

const TOKEN = "fairlead.token";

/** What the node has answered that is not a success: its own sentence, and the status. */
class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The head of a request of who has given a token. */
export function credentials() {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** Keep a token until the tab is closed; "" forgets it. */
export function setToken(token) {
  if (token) sessionStorage.setItem(TOKEN, token);
  else sessionStorage.removeItem(TOKEN);
}

/** Ask the node; returns the JSON of its answer, null if it has none. Throws `Refusal`. */
export async function ask(method, path, body) {
  let answer;
  try {
    answer = await fetch(path, {
      method,
      headers: {
        Accept: "application/json",
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...credentials(),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refusal(0, "the node does not answer; nothing is known of what it did");
  }
  const text = await answer.text();
  let found = null;
  try {
    found = text ? JSON.parse(text) : null;
  } catch {
    found = null;
  }
  if (!answer.ok) throw new Refusal(answer.status, found?.message ?? `${answer.status} ${answer.statusText}`);
  return found;
}

export const get = (path) => ask("GET", path);

/** The path of a connector. */
export function connectorPath(name, ...rest) {
  return ["connectors", name, ...rest].map(encodeURIComponent).join("/");
}
