/** Ten rows as the config would read them, before and after its transforms; nothing is written. */

import { Component, html } from "./html.js";
import { ask } from "./node.js";
import { Table } from "./table.js";

export class Sample extends Component {
  constructor() {
    super();
    this.state = { sample: null, why: "", isBusy: false };
  }

  async read() {
    const { name, config } = this.props;
    this.setState({ isBusy: true, why: "" });
    try {
      this.setState({ sample: await ask("POST", "sample", { name: name || "sample", config }) });
    } catch (refusal) {
      this.setState({ why: refusal.message, sample: null });
    }
    this.setState({ isBusy: false });
  }

  render({ isFine }, { sample, why, isBusy }) {
    return html`<h2>Sample</h2>
      <div class="panel pad">
        <p class="soft">Ten rows as they would be read, with their types. Nothing is written, no offset moves.</p>
        <button type="button" disabled=${!isFine || isBusy} onClick=${() => this.read()}>
          ${isBusy ? "Reading …" : "Look at ten rows"}
        </button>
        ${why && html`<p class="note bad">${why}</p>`}
      </div>
      ${sample?.warnings.map((each) => html`<p class="note">${each}</p>`)}
      ${sample && html`<${Rows} title="As they are read" table=${sample.before} />`}
      ${sample?.after && html`<${Rows} title="As they would be written" table=${sample.after} />`}`;
  }
}

function Rows({ title, table }) {
  return html`<h2>${title}</h2>
    <${Table}
      label=${title}
      heads=${table.columns.map((each) => [html`${each.name}<br /><span class="soft">${each.type}</span>`])}
      rows=${table.rows.map(
        (row) =>
          html`<tr>
            ${row.map((value) => html`<td>${value === null ? html`<span class="soft">null</span>` : String(value)}</td>`)}
          </tr>`,
      )}
    />`;
}
