/** What a person can do to a connector from the page: each asks the node, and says what came of it. */

import { write } from "./config-text.js";
import { plural } from "./format.js";
import { Component, createRef, html } from "./html.js";
import { ask, connectorPath } from "./node.js";
import { refusal } from "./rights.js";
import { go } from "./route.js";
import { store } from "./store.js";

const SHOWN_MS = 8_000;

/**
 * By id: the words of the button, the right that the node asks for, to the connector if it is not of the node,
 * the request, and what it asks for first, if it cannot be taken back.
 */
const ACTIONS = {
  restart: {
    label: "Restart failed",
    needs: "operate",
    done: "is being restarted",
    send: (name) => ask("POST", `${connectorPath(name, "restart")}?includeTasks=true&onlyFailed=true`),
  },
  "restart-all": {
    label: "Restart",
    needs: "operate",
    done: "is being restarted",
    send: (name) => ask("POST", `${connectorPath(name, "restart")}?includeTasks=true`),
  },
  pause: {
    label: "Pause",
    needs: "operate",
    done: "is being paused",
    send: (name) => ask("PUT", connectorPath(name, "pause")),
  },
  resume: {
    label: "Resume",
    needs: "operate",
    done: "goes on",
    send: (name) => ask("PUT", connectorPath(name, "resume")),
  },
  stop: {
    label: "Stop",
    needs: "operate",
    done: "stops",
    send: (name) => ask("PUT", connectorPath(name, "stop")),
  },
  delete: {
    label: "Delete…",
    needs: "administer",
    done: "is being deleted",
    send: (name) => ask("DELETE", connectorPath(name)),
    sure: (name) =>
      `Delete ${name}? Its tasks end and its config goes. The rows in its sink stay, and its offsets: a connector that gets this name goes on behind them.`,
    then: () => go(["connectors"]),
  },
  "accept-column": {
    label: "Accept the columns…",
    needs: "administer",
    done: "reads with the new columns now",
    send: async (name, reason) => {
      await ask("PATCH", connectorPath(name, "config"), { "source.schema.evolution": evolutionIn(reason) });
      await ask("POST", `${connectorPath(name, "restart")}?includeTasks=true&onlyFailed=true`);
    },
    sure: (name, reason) =>
      `Set source.schema.evolution=${evolutionIn(reason)} for ${name} and restart what failed? New columns are added${evolutionIn(reason) === "widen" ? ", and types become wider without loss" : ""}; rows that are in the sink stay as they are.`,
  },
  scale: {
    label: "Scale…",
    needs: "view",
    isOfNode: true,
    open: (name) => go(["workers"], { scale: `${name}:${store.state.connectors[name].tasks_max}` }),
  },
  uncordon: { label: "Look at workers", open: () => go(["workers"]) },
  log: { label: "Log", open: (name) => go(["logs"], { connector: name }) },
  "dead-letters": { label: "Dead letters", open: (name) => go(["letters"], { connector: name }) },
  "retry-letters": {
    label: "Retry…",
    needs: "administer",
    done: "has its dead letters retried",
    send: (name) => ask("POST", connectorPath(name, "dead-letters", "retry")),
    sure: async (name) => {
      const made = await ask("POST", `${connectorPath(name, "dead-letters", "retry")}?dry_run=true`);
      const { "source.path": from, "errors.deadletterqueue.path": again } = made.config;
      return [
        `${made.is_new ? "Make" : "Go on with"} the connector ${made.name}? It reads each letter in ${from} once, has the transforms and the sink that ${name} has now, and keeps what is refused again in ${again}.`,
        made.config,
      ];
    },
    then: (name) => go(["connectors", `${name}-retry`]),
  },
  edit: { label: "Edit config", needs: "administer", open: (name) => go(["connectors", name, "edit"]) },
};

let shown = null;

/** The way to accept other columns that a reason names. */
function evolutionIn(reason) {
  return /source\.schema\.evolution=([a-z-]+)/.exec(reason)?.[1] ?? "widen";
}

/** Show a sentence for a while. */
export function say(text, isBad = false) {
  shown?.setState({ text, isBad });
  clearTimeout(shown?.timer);
  if (shown && !isBad) shown.timer = setTimeout(() => shown.setState({ text: "" }), SHOWN_MS);
}

/** What was done last, or why it was not. */
export class Toast extends Component {
  componentDidMount() {
    shown = this;
  }

  render(_, { text, isBad }) {
    return html`<div role=${isBad ? "alert" : "status"}>
      ${text && html`<div class="toast ${isBad ? "bad" : ""}">${text} <button type="button" onClick=${() => this.setState({ text: "" })}>Close</button></div>`}
    </div>`;
  }
}

/** A button, or with `href` a link like one; for who lacks the right that it needs, it is grey and says so. */
export function Button({ needs, connector, kind, type = "button", disabled, href, onPress, children }) {
  const why = refusal(needs, connector);
  if (why)
    return html`<button type="button" aria-disabled="true" title=${why} onClick=${() => say(`${why}.`, true)}>
      ${children}
    </button>`;
  if (href) return html`<a class="button ${kind}" href=${href}>${children}</a>`;
  return html`<button type=${type} class=${kind} disabled=${disabled} onClick=${onPress}>${children}</button>`;
}

/** The button of an action on a connector. */
export class Action extends Component {
  async press() {
    const { id, name, reason } = this.props;
    const action = ACTIONS[id];
    if (action.open) {
      action.open(name);
      return;
    }
    try {
      const [question, config] = [await action.sure?.(name, reason)].flat();
      if (question && !(await confirm(question, action.label.replace("…", ""), config))) return;
      this.setState({ isBusy: true });
      await action.send(name, reason);
      say(`${name} ${action.done}.`);
      action.then?.(name);
    } catch (refusal) {
      say(`${name}: ${refusal.message}`, true);
    }
    this.setState({ isBusy: false });
  }

  render({ id, name, first }, { isBusy }) {
    const action = ACTIONS[id];
    if (!action) return null;
    const kind = first ? "first" : id === "delete" ? "danger" : "";
    const connector = action.isOfNode ? undefined : name;
    return html`<${Button}
      needs=${action.needs}
      connector=${connector}
      kind=${kind}
      disabled=${isBusy}
      onPress=${() => this.press()}
      >${action.label}<//
    >`;
  }
}

/** Do one thing to several connectors, and say how it went. */
export async function actOnAll(id, names) {
  const action = ACTIONS[id];
  const results = await Promise.allSettled(names.map((name) => action.send(name)));
  const refused = results.filter((each) => each.status === "rejected");
  const why = refused.length ? `; ${plural(refused.length, "refusal")}, the first: ${refused[0].reason.message}` : "";
  say(`${action.label} was asked of ${plural(names.length - refused.length, "connector")}${why}.`, refused.length > 0);
}

/** Ask whether something is really to be done; `config` is that of the connector that it makes. */
export function confirm(question, yes, config) {
  return new Promise((decide) => {
    asking?.setState({ question, yes, config, decide });
  });
}

let asking = null;

/** The question that waits for an answer. */
export class Question extends Component {
  constructor() {
    super();
    this.dialog = createRef();
  }

  componentDidMount() {
    asking = this;
  }

  componentDidUpdate() {
    if (this.state.question && !this.dialog.current.open) this.dialog.current.showModal();
  }

  answer(yes) {
    this.state.decide?.(yes);
    this.setState({ question: null, decide: null });
    if (this.dialog.current.open) this.dialog.current.close();
  }

  render(_, { question, yes, config }) {
    return html`<dialog ref=${this.dialog} aria-labelledby="question" onClose=${() => this.answer(false)}>
      <p id="question">${question}</p>
      ${
        config &&
        html`<details>
          <summary>Its config</summary>
          <pre>${write(config, "yaml")}</pre>
        </details>`
      }
      <div class="acts">
        <button type="button" onClick=${() => this.answer(false)}>Cancel</button
        ><button type="button" class="first" onClick=${() => this.answer(true)}>${yes}</button>
      </div>
    </dialog>`;
  }
}
