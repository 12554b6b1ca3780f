/** The settings of the node and of its group, each with its value, where that is from, and what it means. */

import { say } from "../actions.js";
import { Component, html } from "../html.js";
import { get } from "../node.js";
import { Prose } from "../parts.js";
import { refine } from "../route.js";
import { Table } from "../table.js";

export class Settings extends Component {
  constructor() {
    super();
    this.state = { settings: [], loggers: {} };
  }

  async componentDidMount() {
    try {
      this.setState({ settings: (await get("settings")).settings });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  render({ route, state }, { settings }) {
    const text = (route.query.get("q") ?? "").toLowerCase();
    const shown = settings.filter((each) => !text || `${each.name} ${each.meaning}`.toLowerCase().includes(text));
    return html`<h1>Settings</h1>
      <p class="sub">
        Of this node (version ${state.version}) and of group ${state.group}. A setting is changed in the file or the
        command that started the node, one of the group by <code>fairlead group-config</code>.
      </p>
      <div class="filters">
        <label class="hidden" for="find-setting">Find a setting</label
        ><input
          id="find-setting"
          class="chip"
          placeholder="name or meaning"
          value=${route.query.get("q") ?? ""}
          onInput=${(event) => refine({ q: event.target.value })}
        />
      </div>
      <p></p>
      <${Table}
        label="Settings"
        heads=${["Setting", "Value", ["Default", "narrow-out"], ["From", "narrow-out"], "Meaning"]}
        rows=${shown.map(
          (each) =>
            html`<tr>
              <td class="mono">${each.name}</td>
              <td class="mono wrap">${each.value} ${each.value && html`<span class="soft">${each.unit}</span>`}</td>
              <td class="mono soft wrap narrow-out">${each.default}</td>
              <td class="soft wrap narrow-out">${each.source} ${each.origin}</td>
              <td class="wrap"><${Prose} text=${each.meaning} /></td>
            </tr>`,
        )}
      />`;
  }
}
