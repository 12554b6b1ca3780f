/** Find a connector, a task or a worker by a part of its name: `/` begins, the arrows choose, Enter goes there. */

import { Component, createRef, html } from "./html.js";
import { go } from "./route.js";

const MOST = 12;

export class Search extends Component {
  constructor() {
    super();
    this.input = createRef();
    this.state = { text: "", at: 0, open: false };
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

  leave() {
    this.setState({ text: "", at: 0, open: false });
    this.input.current.blur();
  }

  render(_, { text, at, open }) {
    const results = open ? this.results() : [];
    return html`<search class="find">
      <input
        ref=${this.input}
        type="search"
        role="combobox"
        aria-label="Find a connector, task, worker"
        placeholder="Find a connector, task, worker"
        aria-expanded=${results.length > 0}
        aria-controls="results"
        aria-activedescendant=${results[at] ? `result-${at}` : undefined}
        value=${text}
        onInput=${(event) => this.setState({ text: event.target.value, at: 0, open: true })}
        onKeyDown=${(event) => this.press(event)}
        onBlur=${() => setTimeout(() => this.setState({ open: false }), 150)}
        onFocus=${() => this.setState({ open: true })}
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
          <li class="soft">Nothing has this name.</li>
        </ul>`
      }
    </search>`;
  }
}
