/** All connectors: filters, and what is done to all that a filter shows. */

import { ConnectorTable } from "../connector-table.js";
import { plural } from "../format.js";
import { html } from "../html.js";

export function Connectors({ state, route }) {
  const number = Object.keys(state.connectors).length;
  return html`<div class="head">
      <div>
        <h1>${plural(number, "connector")}</h1>
        <p class="sub">${state.verdict.title}</p>
      </div>
      <div class="acts"><a class="button first" href="#/new">New connector</a></div>
    </div>
    <${ConnectorTable} state=${state} query=${route.query} title="All" isWhole=${true} />`;
}
