/** The events of the node for this tab, by the stream that all tabs share, or by one of its own. */

import { follow } from "./follow.js";
import { credentials } from "./node.js";

/** Call `tell` for each message behind the one with the number `after`; see `follow`. */
export function listen(after, tell) {
  const url = new URL("events", document.baseURI).href;
  const headers = credentials();
  if (!("SharedWorker" in self)) {
    follow(url, headers, after, tell);
    return;
  }
  const name = headers.Authorization ? `of ${digest(headers.Authorization)}` : "open";
  const worker = new SharedWorker(new URL("shared-stream.js", import.meta.url), { type: "module", name });
  const { port } = worker;
  worker.onerror = () => follow(url, headers, after, tell); // its files did not come: the node went away meanwhile
  port.onmessage = ({ data }) => tell(data);
  const begin = () => port.postMessage({ kind: "begin", url, headers, after });
  addEventListener("pagehide", () => port.postMessage({ kind: "end" }));
  addEventListener("pageshow", ({ persisted }) => persisted && begin());
  begin();
}

/** Tabs of different callers do not share a stream. */
function digest(text) {
  let sum = 0;
  for (const letter of text) sum = (sum * 31 + letter.codePointAt(0)) | 0;
  return sum;
}
