/** Dead letters: the rows that were refused, the newest first, each with the reason, its place and its text. */

import { Action } from "../actions.js";
import { count, plural } from "../format.js";
import { Component, html } from "../html.js";
import { connectorPath, get } from "../node.js";
import { Prose, Time } from "../parts.js";
import { refine } from "../route.js";
import { Table } from "../table.js";

const PAGE = 50;

export class Letters extends Component {
  constructor() {
    super();
    this.state = { letters: [], next: null, where: "", why: "" };
  }

  componentDidMount() {
    this.read();
  }

  componentDidUpdate() {
    if (this.name !== this.chosen()) this.read();
  }

  withLetters() {
    return Object.entries(this.props.state.connectors)
      .filter(([, row]) => row.dead_letters > 0)
      .map(([name]) => name)
      .sort();
  }

  chosen() {
    return this.props.route.query.get("connector") ?? this.withLetters()[0] ?? "";
  }

  async read(cursor) {
    const name = this.chosen();
    this.name = name;
    if (!name) return;
    try {
      const query = new URLSearchParams({ limit: PAGE, ...(cursor ? { cursor } : {}) });
      const page = await get(`${connectorPath(name, "dead-letters")}?${query}`);
      if (name !== this.name) return;
      this.setState(({ letters }) => ({
        letters: cursor ? [...letters, ...page.letters] : page.letters,
        next: page.next,
        where: page.where,
        why: "",
      }));
    } catch (refusal) {
      this.setState({ letters: [], next: null, why: refusal.message });
    }
  }

  render({ state }, { letters, next, where, why }) {
    const names = this.withLetters();
    const name = this.chosen();
    const row = state.connectors[name];
    return html`<h1>${names.length ? `${plural(names.length, "connector")} with dead letters` : "No dead letters"}</h1>
      <p class="sub">
        ${names.length ? "Rows that could not be read, or that a rule refused. Each is kept with its reason; no other row waits for it." : "A row that cannot be read, or that a rule refuses, is kept here if its connector has errors.tolerance=all."}
      </p>
      ${names.length > 0 && html`<div class="filters">${names.map((each) => html`<button type="button" class="chip" aria-pressed=${each === name} onClick=${() => refine({ connector: each })}>${each} ${count(state.connectors[each].dead_letters)}</button>`)}</div>`}
      ${why && html`<p class="note wait">${why}</p>`}
      ${
        name &&
        row &&
        html`<h2>${name} <span class="aside">${where}</span></h2>
          <p class="acts"><${Action} id="retry-letters" name=${name} /></p>
          <${Table}
            label=${`Dead letters of ${name}`}
            heads=${["When", "Reason", "Stage", "Where", "Text"]}
            rows=${letters.map(
              (each) =>
                html`<tr>
                  <td class="soft"><${Time} at=${each.time_ms} as="clock" /></td>
                  <td class="wrap"><${Prose} text=${each.reason} /></td>
                  <td>${each.stage}</td>
                  <td class="wrap mono">${each.place}</td>
                  <td class="wrap"><pre>${each.raw}</pre></td>
                </tr>`,
            )}
            empty=${row.dead_letters ? "Being read …" : "None."}
          />
          ${next && html`<p><button type="button" onClick=${() => this.read(next)}>Older ones</button></p>`}`
      }`;
  }
}
