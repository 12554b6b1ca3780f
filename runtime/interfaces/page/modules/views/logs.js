/** The logs of the node: by connector, task, worker and level, followed while the view is open. */

import { Component, createRef, html } from "../html.js";
import { get } from "../node.js";
import { refine } from "../route.js";

const AGAIN_MS = 2_000;
const TAIL = 300;
const MOST = 2_000;
const LEVELS = ["DEBUG", "INFO", "WARNING", "ERROR"];
const LINE = /^\d{4}-\d\d-\d\d[T ](\S+)\s+([A-Z]+)\s+(?:\d+\s+)?([\s\S]*)$/;

export class Logs extends Component {
  constructor() {
    super();
    this.end = createRef();
    this.state = { entries: [], why: "" };
  }

  componentDidMount() {
    this.read();
    this.timer = setInterval(() => document.hidden || this.read(), AGAIN_MS);
  }

  componentDidUpdate(_, before) {
    if (this.asked !== this.query().toString()) this.read();
    const list = this.end.current;
    if (this.isAtEnd && before.entries !== this.state.entries) list.scrollTop = list.scrollHeight;
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  query() {
    const given = this.props.route.query;
    const query = new URLSearchParams({ tail: TAIL, level: given.get("level") ?? "INFO" });
    for (const name of ["connector", "worker"]) if (given.get(name)) query.append("about", given.get(name));
    return query;
  }

  /** Read what the filters choose, and from then on only what is new. */
  async read() {
    const query = this.query();
    const asked = query.toString();
    const isNew = asked !== this.asked;
    if (!isNew && this.isReading) return;
    this.asked = asked;
    this.isReading = true;
    if (!isNew && this.next) query.set("after", this.next);
    try {
      const page = await get(`logs?${query}`);
      if (asked !== this.asked) return;
      this.next = page.next;
      const list = this.end.current;
      this.isAtEnd = isNew || (list && list.scrollHeight - list.scrollTop - list.clientHeight < 40);
      if (isNew || page.entries.length)
        this.setState(({ entries }) => ({
          entries: [...(isNew ? [] : entries), ...page.entries].slice(-MOST),
          why: "",
        }));
    } catch (refusal) {
      this.setState({ why: refusal.message });
    } finally {
      this.isReading = false;
    }
  }

  render({ state, route }, { entries, why }) {
    const { query } = route;
    const field = (name, label, names) =>
      html`<label class="hidden" for="log-${name}">${label}</label>
        <input
          id="log-${name}"
          class="chip"
          list="${name}-list"
          placeholder=${label}
          value=${query.get(name) ?? ""}
          onChange=${(event) => refine({ [name]: event.target.value })}
        />
        <datalist id="${name}-list">${names.map((each) => html`<option value=${each} />`)}</datalist>`;
    return html`<h1>Logs</h1>
      <p class="sub">The last lines of this node's processes that fit, followed while you look.</p>
      <div class="filters">
        ${field("connector", "connector or task", Object.keys(state.connectors).sort())}${field(
          "worker",
          "worker",
          state.workers.map((each) => each.name),
        )}
        ${LEVELS.map((each) => html`<button type="button" class="chip" aria-pressed=${(query.get("level") ?? "INFO") === each} onClick=${() => refine({ level: each })}>${each.toLowerCase()}</button>`)}
      </div>
      <p></p>
      ${why && html`<p class="note wait">${why}</p>`}
      <div class="panel log" ref=${this.end} tabindex="0" role="log" aria-label="Log lines">
        ${entries.map((each) => html`<${Line} entry=${each} />`)}
        ${!entries.length && html`<div class="empty">No line fits.</div>`}
      </div>`;
  }
}

class Line extends Component {
  shouldComponentUpdate(next) {
    return next.entry !== this.props.entry;
  }

  render({ entry }) {
    const [, time, level, text] = LINE.exec(entry.text) ?? [null, "", "", entry.text];
    return html`<div class="row ${level}">
      <span class="soft">${time.slice(0, 12)}</span><span>${level}</span><span>${text.trimEnd()}</span>
    </div>`;
  }
}
