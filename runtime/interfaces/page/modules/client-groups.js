/** Groups of Kafka's clients: how they are read again when they change, and the names of their members. */

import { get } from "./node.js";
import { store } from "./store.js";

const LAG_MS = 3_000;
const LEAST_MS = 1_000;
const SHORT_ID = 8;

/** The path of a group. */
export function groupPath(id, ...rest) {
  return ["groups", id, ...rest].map(encodeURIComponent).join("/");
}

/**
 * Reads again for as long as a view is open: `read` whenever the node tells of a change, `readLag` in between.
 *
 * `concerns(ids)` says whether a change is of what the view shows. Never two reads at a time, and one a second. A page
 * that nobody sees reads nothing: each read may ask the brokers.
 */
export class GroupReader {
  constructor({ read, readLag, concerns }) {
    Object.assign(this, { read, readLag, concerns });
    this.isReading = false;
    this.isDue = false;
    this.isUrgent = false;
    this.beSeen = () => this.isDue && this.again();
  }

  start() {
    this.unsubscribe = store.subscribeToGroups((ids) => (ids === null || this.concerns(ids)) && this.again());
    this.timer = setInterval(() => document.hidden || this.isReading || this.run(this.readLag), LAG_MS);
    document.addEventListener("visibilitychange", this.beSeen);
    this.again();
  }

  stop() {
    this.unsubscribe();
    document.removeEventListener("visibilitychange", this.beSeen);
    clearInterval(this.timer);
    clearTimeout(this.pause);
    this.isStopped = true;
  }

  /** Read at once, or when the read that is going on has ended: somebody chose what to show. */
  now() {
    this.isUrgent = true;
    clearTimeout(this.pause);
    this.pause = null;
    this.again();
  }

  /** Read when the pause behind the last read is over. */
  again() {
    this.isDue = true;
    if (!document.hidden && !this.isReading && !this.pause) this.run(this.read);
  }

  async run(read) {
    clearTimeout(this.pause);
    this.isReading = true;
    if (read === this.read) this.isDue = this.isUrgent = false;
    await read();
    this.isReading = false;
    if (this.isStopped) return;
    const pause = this.isUrgent ? 0 : LEAST_MS;
    this.pause = setTimeout(() => {
      this.pause = null;
      if (this.isDue) this.again();
    }, pause);
  }
}

/** Where clients reach the listener of this node; "" if there is none. */
export async function listenerAddress() {
  const { settings } = await get("settings");
  return settings.find((each) => each.name === "kafka.listeners")?.value ?? "";
}

/** That lag is not known: all of it, or some, as the brokers told it a moment ago or were asked for a part. */
export function unknownLag(isKnownInPart) {
  return isKnownInPart ? "Some of the lag is not known, or not of this moment" : "No lag is known";
}

/** The shape of a group's state. */
export function stateShape(state) {
  return state === "Stable" ? "ok" : state === "Empty" || state === "Dead" ? "off" : "move";
}

/** `billing(7QyFKHtl)`: the instance or client id of a member, and the start of the random part of its own id. */
export function memberName(client, id) {
  if (!client) return id;
  const label = client.instance_id || client.client_id;
  if (!label || label === id) return id;
  let random = id;
  for (const each of [client.instance_id, client.client_id])
    if (each && id.startsWith(`${each}-`)) random = id.slice(each.length + 1);
  return `${label}(${random.slice(0, SHORT_ID)})`;
}
