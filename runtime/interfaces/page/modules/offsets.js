/** The offsets of a connector: how far each partition of its source was read; set and sought while it is stopped. */

import { Button, say } from "./actions.js";
import { plural } from "./format.js";
import { Component, html } from "./html.js";
import { ask, connectorPath, get } from "./node.js";
import { refusal } from "./rights.js";

const SHOWN = 12;
const AGAIN_MS = 3_000;

export class Offsets extends Component {
  constructor() {
    super();
    this.state = { offsets: [], sought: null, isOpen: false };
  }

  componentDidMount() {
    this.read();
  }

  /** Read them again once something was committed, and not more often than every few seconds. */
  componentDidUpdate(before) {
    if (before.committed === this.props.committed) return;
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.read();
    }, AGAIN_MS);
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  async read() {
    try {
      this.setState({ offsets: (await get(connectorPath(this.props.name, "offsets"))).offsets });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  async seek(to, isDry) {
    try {
      const sought = await ask("POST", connectorPath(this.props.name, "offsets", "seek"), { to, dry_run: isDry });
      this.setState({ sought: isDry ? { ...sought, to } : null });
      if (isDry) return;
      say(sought.message);
      this.read();
    } catch (refusal) {
      this.setState({ sought: null });
      say(refusal.message, true);
    }
  }

  render({ name, isStopped }, { offsets, sought, isOpen }) {
    const shown = isOpen ? offsets : offsets.slice(0, SHOWN);
    const plan = (event) => {
      event.preventDefault();
      this.seek(new FormData(event.target).get("to").trim(), true);
    };
    return html`<h2>Offsets <span class="aside">${plural(offsets.length, "partition")}</span></h2>
      <div class="panel clip">
        ${
          offsets.length
            ? html`<dl class="pairs stacked">
                ${shown.map(
                  (each) =>
                    html`<dt class="mono">${text(each.partition)}</dt>
                      <dd class="mono">${text(each.offset)}</dd>`,
                )}
              </dl>`
            : html`<p class="pairs soft">Nothing was read yet.</p>`
        }
        ${offsets.length > SHOWN && html`<div class="more"><button type="button" onClick=${() => this.setState({ isOpen: !isOpen })}>${isOpen ? "Fewer" : `All ${offsets.length}`}</button></div>`}
        <form class="more" onSubmit=${plan}>
          <label class="hidden" for="seek">Read again from</label>
          <input
            id="seek"
            name="to"
            list="places"
            placeholder="earliest, latest or a time"
            required
            disabled=${!isStopped || refusal("operate", name)}
          />
          <datalist id="places">
            <option value="earliest" />
            <option value="latest" />
            <option value=${new Date().toISOString().slice(0, 19) + "Z"} />
          </datalist>
          <${Button} needs="operate" connector=${name} type="submit" disabled=${!isStopped}>Seek…<//>
          ${!isStopped && html`<p>Offsets can be changed while the connector is stopped.</p>`}
        </form>
        ${
          sought &&
          html`<div class="more wait">
            <p>${sought.message}. Nothing has changed yet.</p>
            <span class="acts"
              ><button type="button" class="first" onClick=${() => this.seek(sought.to, false)}>
                Seek to ${sought.to}</button
              ><button type="button" onClick=${() => this.setState({ sought: null })}>Cancel</button></span
            >
          </div>`
        }
      </div>`;
  }
}

/** A flat object in one line: `topic t, partition 0`. */
function text(object) {
  if (object === null) return "none";
  return Object.entries(object)
    .map(([key, value]) => `${key} ${value}`)
    .join(", ");
}
