/** One stream for all tabs: a browser opens six connections to a node, and a seventh tab would wait for ever. */

import { follow } from "./follow.js";

const ports = new Set();
let latest = null;
let isFollowing = false;

/** Tell all tabs; a tab that comes later follows from the latest event on. */
function tell(message) {
  latest = message.kind === "lost" ? message : { kind: "open", data: { sequence: message.data.sequence } };
  for (const port of ports) port.postMessage(message);
}

onconnect = ({ ports: [port] }) => {
  port.onmessage = ({ data }) => {
    if (data.kind === "end") ports.delete(port);
    if (data.kind !== "begin") return;
    ports.add(port);
    if (latest) port.postMessage(latest);
    if (!isFollowing) follow(data.url, data.headers, tell);
    isFollowing = true;
  };
};
