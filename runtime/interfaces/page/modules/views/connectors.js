/** All connectors: filters, and what is done to all that a filter shows. */

import { Button } from "../actions.js";
import { ConnectorTable } from "../connector-table.js";
import { plural } from "../format.js";
import { html } from "../html.js";
import { SOME } from "../rights.js";

export function Connectors({ state, route }) {
  const number = Object.keys(state.connectors).length;
  return html`<div class="head">
      <div>
        <h1>${plural(number, "connector")}</h1>
        <p class="sub">${state.verdict.title}</p>
      </div>
      <div class="acts">
        <${Button} needs="administer" connector=${SOME} kind="first" href="#/new">New connector<//>
      </div>
    </div>
    <${ConnectorTable} state=${state} query=${route.query} title="All" isWhole=${true} />`;
}
