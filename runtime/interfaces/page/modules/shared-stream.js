/** One stream for all tabs: a browser opens six connections to a node, and a seventh tab would wait for ever. */

import { follow } from "./follow.js";

/** So many of the latest messages are kept for tabs that have read the state a moment ago. */
const MOST_KEPT = 200;

const ports = new Set();
let kept = [];
/** What a tab is told that has missed more; null: the stream is not open yet. */
let latest = null;
let isFollowing = false;

function tell(message) {
  const { kind, data } = message;
  latest = kind === "lost" ? message : { kind: "open", data: { sequence: data.sequence } };
  if (kind === "gap") kept = [];
  else if (kind !== "open" && kind !== "lost") kept = [...kept.slice(1 - MOST_KEPT), message];
  for (const port of ports) port.postMessage(message);
}

/** Tell a tab what came behind the message that it names, as far as that is kept. */
function begin(port, after) {
  ports.add(port);
  const first = kept[0]?.data.sequence ?? latest?.data?.sequence + 1;
  if (latest?.kind !== "open" || after < first - 1) {
    if (latest) port.postMessage(latest);
    return;
  }
  port.postMessage({ kind: "open", data: { sequence: after } });
  for (const each of kept) if (each.data.sequence > after) port.postMessage(each);
}

onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data.kind === "end") ports.delete(port);
    if (data.kind !== "begin") return;
    begin(port, data.after);
    if (!isFollowing) follow(data.url, data.headers, data.after, tell);
    isFollowing = true;
  };
};
