/** The configs that a connector has had: who changed what, when, and the way back to an older one. */

import { Button, confirm, say } from "./actions.js";
import { Component, html } from "./html.js";
import { ask, connectorPath, get } from "./node.js";
import { Time } from "./parts.js";
import { refusal } from "./rights.js";
import { Table } from "./table.js";

const SHOWN = 5;

export class Versions extends Component {
  constructor() {
    super();
    this.state = { revisions: [], open: null, isAll: false };
  }

  componentDidMount() {
    this.read();
  }

  componentDidUpdate(before) {
    if (before.changed !== this.props.changed) this.read();
  }

  async read() {
    try {
      this.setState({ revisions: (await get(connectorPath(this.props.name, "revisions"))).revisions.reverse() });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  async goBack(revision) {
    const { name } = this.props;
    if (
      !(await confirm(
        `Give ${name} its config of revision ${revision} again? It is checked first; its offsets stay as they are.`,
        "Go back to it",
      ))
    )
      return;
    try {
      await ask("POST", connectorPath(name, "rollback"), { revision });
      say(`${name} has the config of revision ${revision} again.`);
      this.read();
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  render({ name }, { revisions, open, isAll }) {
    const shown = isAll ? revisions : revisions.slice(0, SHOWN);
    return html`<h2>
        Config
        ${!refusal("administer", name) && html`<span class="aside"><a href="#/connectors/${encodeURIComponent(name)}/edit">edit</a></span>`}
      </h2>
      <${Table}
        label="Versions of the config"
        heads=${["Revision", "When", "By", "Changed", ""]}
        rows=${shown.map(
          (each, at) =>
            html` <tr key=${each.revision}>
                <td>${each.revision}</td>
                <td class="soft"><${Time} at=${each.time_ms} as="clock" /></td>
                <td>${each.principal ?? each.actor ?? ""}</td>
                <td class="wide">${each.changed.join(", ")}</td>
                <td>
                  <span class="acts"
                    ><button
                      type="button"
                      aria-expanded=${open === each.revision}
                      onClick=${() => this.setState({ open: open === each.revision ? null : each.revision })}
                    >
                      Show
                    </button>
                    ${at > 0 && html`<${Button} needs="administer" connector=${name} onPress=${() => this.goBack(each.revision)}>Go back to it…<//>`}</span
                  >
                </td>
              </tr>
              ${
                open === each.revision &&
                html`<tr>
                  <td colspan="5">
                    <${Difference} before=${revisions[at + 1]?.config ?? {}} after=${each.config} />
                  </td>
                </tr>`
              }`,
        )}
      />
      ${revisions.length > SHOWN && html`<p><button type="button" onClick=${() => this.setState({ isAll: !isAll })}>${isAll ? "Fewer" : `All ${revisions.length}`}</button></p>`}`;
  }
}

/** A config beside the one before it: what is new, and what is gone. */
export function Difference({ before, after }) {
  const keys = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  return html`<table class="diff">
    <tbody>
      ${keys.map((key) => {
        const [was, is] = [before[key], after[key]];
        if (was === is)
          return html`<tr>
            <td>${key}</td>
            <td>${is}</td>
          </tr>`;
        return html`${
          was !== undefined &&
          html`<tr class="less">
            <td>− ${key}</td>
            <td>${was}</td>
          </tr>`
        }${
          is !== undefined &&
          html`<tr class="plus">
            <td>+ ${key}</td>
            <td>${is}</td>
          </tr>`
        }`;
      })}
    </tbody>
  </table>`;
}
