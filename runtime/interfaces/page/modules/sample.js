/** Ten rows as the config would read them, before and after its transforms; nothing is written. */

import { Button } from "./actions.js";
import { Component, html } from "./html.js";
import { ask } from "./node.js";
import { Table } from "./table.js";

/** The name of what is sampled before it has one. */
const UNNAMED = "sample";

export class Sample extends Component {
  constructor() {
    super();
    this.state = { sample: null, why: "", isBusy: false };
  }

  async read() {
    const { name, config } = this.props;
    this.setState({ isBusy: true, why: "" });
    try {
      this.setState({ sample: await ask("POST", "sample", { name: name || UNNAMED, config }) });
    } catch (refusal) {
      this.setState({ why: refusal.message, sample: null });
    }
    this.setState({ isBusy: false });
  }

  render({ name, isFine }, { sample, why, isBusy }) {
    return html`<h2>Sample</h2>
      <div class="panel pad">
        <p class="soft">Ten rows as they would be read, with their types. Nothing is written, no offset moves.</p>
        <${Button}
          needs="administer"
          connector=${name || UNNAMED}
          disabled=${!isFine || isBusy}
          onPress=${() => this.read()}
          >${isBusy ? "Reading …" : "Look at ten rows"}<//
        >
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
