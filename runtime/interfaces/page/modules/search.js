/**
 * Find a connector, a task, a worker or a Kafka group by a part of its name: `/` begins, the arrows choose, Enter goes
 * there.
 *
 * The node is asked for groups alone, since a page does not have all of them.
 */

import { Component, createRef, html } from "./html.js";
import { get } from "./node.js";
import { refusal } from "./rights.js";
import { go } from "./route.js";

const MOST = 12;
const MOST_GROUPS = 4;
const ASK_MS = 200;
const CLICK_MS = 150;
const WHAT = "Find a connector, task, worker, Kafka group";

export class Search extends Component {
  constructor() {
    super();
    this.input = createRef();
    /** `groups` are the ids of those that the node found; null: it was not asked, or has not answered. */
    this.state = { text: "", at: 0, open: false, groups: [] };
    this.hear = (event) => {
      if (event.key !== "/" || event.ctrlKey || event.metaKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName))
        return;
      event.preventDefault();
      this.input.current.focus();
    };
  }

  componentDidMount() {
    addEventListener("keydown", this.hear);
  }

  componentWillUnmount() {
    removeEventListener("keydown", this.hear);
    clearTimeout(this.timer);
    clearTimeout(this.closing);
  }

  type(text) {
    clearTimeout(this.timer);
    const asked = text.trim();
    const isAsked = asked && !refusal("view"); // the node would refuse who sees some connectors alone
    this.setState({ text, at: 0, open: true, groups: isAsked ? null : [] });
    if (isAsked) this.timer = setTimeout(() => this.askForGroups(asked), ASK_MS);
  }

  async askForGroups(text) {
    let groups = [];
    try {
      const found = await get(`client-groups?${new URLSearchParams({ text, limit: MOST_GROUPS })}`);
      groups = found.groups.map((each) => each.group_id);
    } catch {
      // The head says it if the node is away; the rest is found without it.
    }
    if (text === this.state.text.trim()) this.setState({ groups });
  }

  results() {
    const text = this.state.text.trim().toLowerCase();
    const { state } = this.props;
    if (!text || !state) return [];
    const task = /^(.+?)[-/](\d+)$/.exec(text);
    const results = [];
    const add = (kind, label, parts, query) => results.length < MOST && results.push({ kind, label, parts, query });
    for (const name of Object.keys(state.connectors).sort()) {
      const lower = name.toLowerCase();
      if (lower.includes(text)) add("connector", name, ["connectors", name]);
      else if (task && lower.includes(task[1]) && Number(task[2]) < state.connectors[name].cells.length)
        add("task", `${name}-${task[2]}`, ["connectors", name], { task: task[2] });
    }
    for (const { name } of state.workers)
      if (name.toLowerCase().includes(text)) add("worker", name, ["workers"], { worker: name });
    for (const id of this.state.groups ?? []) results.push({ kind: "Kafka group", label: id, parts: ["groups", id] });
    return results;
  }

  press(event) {
    const results = this.results();
    const { at } = this.state;
    if (event.key === "ArrowDown") this.setState({ at: Math.min(at + 1, results.length - 1) });
    else if (event.key === "ArrowUp") this.setState({ at: Math.max(at - 1, 0) });
    else if (event.key === "Escape") this.leave();
    else if (event.key === "Enter" && results[at]) this.choose(results[at]);
    else return;
    event.preventDefault();
  }

  choose({ parts, query }) {
    go(parts, query);
    this.leave();
  }

  begin() {
    clearTimeout(this.closing);
    this.setState({ open: true });
  }

  /** The results stay for the moment that a click on one of them takes. */
  close() {
    this.closing = setTimeout(() => this.setState({ open: false }), CLICK_MS);
  }

  leave() {
    clearTimeout(this.timer);
    this.setState({ text: "", at: 0, open: false, groups: [] });
    this.input.current.blur();
  }

  render(_, { text, at, open, groups }) {
    const results = open ? this.results() : [];
    return html`<search class="find">
      <input
        ref=${this.input}
        type="search"
        role="combobox"
        aria-label=${WHAT}
        placeholder=${WHAT}
        aria-expanded=${results.length > 0}
        aria-controls="results"
        aria-activedescendant=${results[at] ? `result-${at}` : undefined}
        value=${text}
        onInput=${(event) => this.type(event.target.value)}
        onKeyDown=${(event) => this.press(event)}
        onBlur=${() => this.close()}
        onFocus=${() => this.begin()}
      />
      ${!text && html`<kbd aria-hidden="true">/</kbd>`}
      ${
        results.length > 0 &&
        html`<ul id="results" role="listbox" aria-label="What was found">
          ${results.map(
            (each, number) =>
              html`<li role="presentation">
                <a
                  id="result-${number}"
                  role="option"
                  aria-selected=${number === at}
                  tabindex="-1"
                  href="#"
                  onClick=${(event) => {
                    event.preventDefault();
                    this.choose(each);
                  }}
                  >${each.label}<span>${each.kind}</span></a
                >
              </li>`,
          )}
        </ul>`
      }
      ${
        open &&
        text &&
        !results.length &&
        html`<ul id="results">
          <li class="soft">${groups ? "Nothing has this name." : "Looking …"}</li>
        </ul>`
      }
    </search>`;
  }
}
