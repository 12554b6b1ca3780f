/**
 * The state of the node as plain objects: `/state` at first, then what changes, message by message.
 *
 * Whoever shows it is called at most fifteen times a second, however much changes, and never with two moments mixed.
 * Once that is painted, the last hour of each connector is read, and then the stream begins behind the state: so
 * nothing is read twice, and nobody waits for what is drawn small.
 */

import { setNodeTime } from "./format.js";
import { Frames } from "./frames.js";
import { get } from "./node.js";
import { learnRights } from "./rights.js";
import { listen } from "./stream.js";

const AGAIN_MS = 2_000;
const MOST_LINES = 50;
const MOST_CURVE = 60;
const MOST_STEPS = 240;
const STEPS_A_POINT = 4;
const WHOLE = ["verdict", "troubles", "epoch", "assignment_epoch", "group_state", "assignor"];

class Store {
  constructor() {
    /** What `/state` has, and what has changed since; null before it is there. */
    this.state = null;
    /** Since when nothing comes from the node, in ms of the browser's clock; null: it is connected. */
    this.lostAt = null;
    /** The status with which the node refuses this page; 0: it does not. */
    this.refused = 0;
    /** Why it does so, in its own words. */
    this.why = "";
    /** The number of the event behind which all others come to this tab; null: the stream is not open yet. */
    this.follows = null;
    /** How many connectors there are of each shape. */
    this.sums = {};
    /** Grows whenever the order of connectors may have changed. */
    this.order = 0;
    this.listeners = new Set();
    /** Called with the ids of groups of Kafka's clients that have changed; null: any may have. */
    this.groupListeners = new Set();
    /** The events that have come since the state was asked for. */
    this.waiting = [];
    /** Whether the state is being read, or is tried again in a moment. */
    this.isLoading = false;
    /** How often what came before was of no use: the state of another process of the node has to be read. */
    this.gaps = 0;
    this.isListening = false;
    /** The number of the last message that the hours of connectors contain. */
    this.hoursEnd = 0;
    this.steps = 0;
    this.frames = new Frames(() => this.tell());
  }

  start() {
    this.learn();
    this.load();
  }

  subscribe(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  subscribeToGroups(listener) {
    this.groupListeners.add(listener);
    return () => this.groupListeners.delete(listener);
  }

  receive({ kind, data, status }) {
    if (kind === "open") {
      const wasLost = this.lostAt !== null;
      this.lostAt = null;
      this.refused = 0;
      this.follows = data.sequence;
      if (wasLost) this.learn();
      if (this.misses()) this.load();
    } else if (kind === "lost") {
      this.lostAt ??= Date.now();
      this.refuse(status, this.why);
    } else if (kind === "gap") {
      this.follows = data.sequence;
      this.waiting = []; // they were of the process before, which counted by itself
      this.gaps += 1;
      this.load();
    } else if (this.isLoading || !this.state) {
      this.waiting.push({ kind, data });
    } else {
      this.apply(kind, data);
    }
    this.show();
  }

  /** Show that the node wants to know who asks, if an answer with this status says so. */
  refuse(status, why = "") {
    this.refused = status === 401 || status === 403 ? status : 0;
    this.why = why;
    this.show();
  }

  /** Learn what the caller may do; the node ends the stream of who may do something else now. */
  async learn() {
    if (await learnRights()) this.load();
    this.show();
  }

  /** Whether something happened behind the state, and before the stream was open. */
  misses() {
    return this.state !== null && this.follows !== null && this.follows > this.state.sequence;
  }

  async load() {
    if (this.isLoading) return;
    this.isLoading = true;
    const { gaps } = this;
    let state;
    try {
      state = await get("state");
    } catch (refusal) {
      this.refuse(refusal.status, refusal.message);
      if (!this.isListening) this.lostAt ??= Date.now();
      if (!this.refused) setTimeout(() => this.reload(), AGAIN_MS);
      else this.isLoading = false;
      return;
    }
    if (gaps !== this.gaps) {
      this.reload();
      return;
    }
    if (this.state && this.state.version !== state.version) location.reload(); // its files are others now
    setNodeTime(state.time_ms);
    for (const [name, row] of Object.entries(state.connectors)) row.history = this.state?.connectors[name]?.history ?? {};
    this.state = state;
    this.count();
    this.tellGroups(null);
    this.isLoading = false;
    const waiting = this.waiting;
    this.waiting = [];
    for (const { kind, data } of waiting) this.apply(kind, data);
    this.show();
    if (this.isListening) this.readHours();
    if (this.misses()) this.load();
  }

  /** Read the last hour of each connector; without it, it begins now. */
  async readHours() {
    let hours;
    try {
      hours = await get("state/history");
    } catch {
      return;
    }
    this.hoursEnd = hours.sequence;
    const { connectors } = this.state;
    for (const [name, history] of Object.entries(hours.connectors))
      if (name in connectors) connectors[name] = { ...connectors[name], history };
    this.show();
  }

  /** Read the state again; what comes meanwhile waits all the time. */
  reload() {
    this.isLoading = false;
    this.load();
  }

  apply(kind, data) {
    if (data.sequence <= this.state.sequence) return;
    this.state.sequence = data.sequence;
    this.state.time_ms = data.time_ms;
    setNodeTime(data.time_ms);
    if (kind === "step") this.step(data);
    else if (kind === "change") this.change(data);
  }

  change(data) {
    const state = this.state;
    for (const field of WHOLE) if (field in data) state[field] = data[field];
    if (data.figures) state.figures = { ...data.figures, history: state.figures.history };
    for (const name of data.gone ?? []) this.put(name, undefined);
    for (const [name, row] of Object.entries(data.connectors ?? {})) this.put(name, row);
    if (data.workers) {
      const known = new Map(state.workers.map((each) => [each.name, each.history]));
      state.workers = data.workers.map((each) => ({ ...each, history: known.get(each.name) ?? {} }));
    }
    if (data.epochs) {
      const fresh = new Set(data.epochs.map((each) => each.epoch));
      const all = [...data.epochs, ...state.epochs.filter((each) => !fresh.has(each.epoch))];
      state.epochs = all.sort((one, other) => other.epoch - one.epoch).slice(0, MOST_LINES);
    }
    if (data.lines) state.lines = [...data.lines, ...state.lines].slice(0, MOST_LINES);
    if ("client_groups" in data) this.tellGroups(data.client_groups);
  }

  tellGroups(changed) {
    for (const listener of this.groupListeners) listener(changed);
  }

  put(name, row) {
    const known = this.state.connectors[name];
    if (known) this.sums[known.shape] -= 1;
    if (row) {
      row.history ??= known?.history ?? {};
      this.sums[row.shape] = (this.sums[row.shape] ?? 0) + 1;
      this.state.connectors[name] = row;
    } else {
      delete this.state.connectors[name];
    }
    if (known?.shape !== row?.shape) this.order += 1;
  }

  step(data) {
    this.steps += 1;
    const state = this.state;
    if (data.figures) {
      const history = { ...state.figures.history };
      for (const name of Object.keys(history)) history[name] = longer(history[name], data.figures[name], MOST_STEPS);
      state.figures = { ...data.figures, history };
    }
    for (const each of state.workers) {
      const [cpu = null, memory = null, heartbeat = null] = data.workers?.[each.name] ?? [];
      Object.assign(each, { cpu, memory_bytes: memory, heartbeat_age_ms: heartbeat });
      each.history = {
        cpu: longer(each.history.cpu, cpu, MOST_STEPS),
        memory_bytes: longer(each.history.memory_bytes, memory, MOST_STEPS),
        heartbeat_age_ms: longer(each.history.heartbeat_age_ms, heartbeat, MOST_STEPS),
      };
    }
    if (this.steps % STEPS_A_POINT || data.sequence <= this.hoursEnd) return;
    for (const [name, row] of Object.entries(state.connectors)) {
      const history = {
        rows_per_second: longer(row.history.rows_per_second, data.connectors?.[name] ?? 0, MOST_CURVE),
      };
      state.connectors[name] = { ...row, history };
    }
  }

  count() {
    this.sums = {};
    for (const row of Object.values(this.state.connectors)) this.sums[row.shape] = (this.sums[row.shape] ?? 0) + 1;
    this.order += 1;
  }

  /** Call all who show the state, as soon as it is time. */
  show() {
    this.frames.ask();
  }

  tell() {
    for (const listener of [...this.listeners]) listener();
    if (this.state && !this.isListening) {
      this.isListening = true;
      setTimeout(() => this.listen());
    }
  }

  async listen() {
    await this.readHours();
    listen(this.state.sequence, (message) => this.receive(message));
  }
}

function longer(values, value, most) {
  return [...(values ?? []), value].slice(-most);
}

export const store = new Store();
