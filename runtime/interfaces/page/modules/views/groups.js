/** Groups of Kafka's clients at the listener: their members, generations, lag and offsets. */

import { say } from "../actions.js";
import { count, plural } from "../format.js";
import { Component, html } from "../html.js";
import { get } from "../node.js";
import { Shape, Time } from "../parts.js";

const AGAIN_MS = 3_000;
const MOST_OFFSETS = 200;

export class Groups extends Component {
  constructor() {
    super();
    this.state = { groups: null, group: null };
  }

  componentDidMount() {
    this.read();
    this.timer = setInterval(() => document.hidden || this.read(), AGAIN_MS);
  }

  componentDidUpdate(before) {
    if (before.route.parts[1] !== this.props.route.parts[1]) this.read();
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  async read() {
    const chosen = this.props.route.parts[1];
    try {
      const [groups, group] = await Promise.all([
        get("groups"),
        chosen ? get(`groups/${encodeURIComponent(chosen)}`) : null,
      ]);
      if (chosen === this.props.route.parts[1]) this.setState({ groups, group });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  render({ state }, { groups, group }) {
    const others = (groups ?? []).filter((each) => each.group_id !== state.group);
    return html`<h1>${groups ? plural(others.length, "Kafka group") : "Kafka groups"}</h1>
      <p class="sub">Consumers, share groups and Connect's own workers that speak to this node as to a broker.</p>
      ${
        groups &&
        !others.length &&
        html`<div class="panel empty">
          <h3>No client of Kafka is here</h3>
          Set <code>kafka.listeners</code> and <code>kafka.bootstrap.servers</code> when the node starts, and give its
          address to clients as their <code>bootstrap.servers</code>: this node is then the coordinator of their groups.
        </div>`
      }
      ${
        others.length > 0 &&
        html`<div class="panel scroll" tabindex="0" role="region" aria-label="Groups">
          <table>
            <thead>
              <tr>
                <th scope="col">Group</th>
                <th scope="col">Type</th>
                <th scope="col">State</th>
                <th scope="col" class="num">Epoch</th>
                <th scope="col" class="num">Members</th>
                <th scope="col" class="num">Assigned</th>
                <th scope="col">Assignor</th>
              </tr>
            </thead>
            <tbody>
              ${others.map(
                (each) =>
                  html`<tr key=${each.group_id}>
                    <td class="name">
                      <span class="state"
                        ><${Shape}
                          kind=${each.state === "Stable" ? "ok" : each.state === "Empty" ? "off" : "wait"}
                          word=${each.state}
                        /><a href="#/groups/${encodeURIComponent(each.group_id)}"><b>${each.group_id}</b></a></span
                      >
                    </td>
                    <td>${each.type}</td>
                    <td>${each.state}</td>
                    <td class="num">${count(each.epoch ?? each.group_epoch)}</td>
                    <td class="num">${count(each.members)}</td>
                    <td class="num">${count(each.assigned)}</td>
                    <td>${each.assignor}</td>
                  </tr>`,
              )}
            </tbody>
          </table>
        </div>`
      }
      ${group && html`<${OneGroup} group=${group} />`}`;
  }
}

function OneGroup({ group }) {
  const offsets = group.offsets ?? [];
  return html`<h2>${group.group_id}</h2>
    <div class="panel scroll" tabindex="0" role="region" aria-label="Members">
      <table>
        <thead>
          <tr>
            <th scope="col">Member</th>
            <th scope="col">Client</th>
            <th scope="col">State</th>
            <th scope="col">Assigned</th>
          </tr>
        </thead>
        <tbody>
          ${(group.members ?? []).map(
            (each) =>
              html`<tr>
                <td class="name mono">${each.member_id}</td>
                <td>${each.client_id ?? each.worker_id}</td>
                <td>${each.state}</td>
                <td class="wrap">
                  ${(each.assigned ?? []).map((one) => (typeof one === "string" ? one : one.id)).join(", ")}
                </td>
              </tr>`,
          )}
          ${
            !(group.members ?? []).length &&
            html`<tr>
              <td colspan="4" class="soft">No member now.</td>
            </tr>`
          }
        </tbody>
      </table>
    </div>
    ${
      offsets.length > 0 &&
      html`<h2>Offsets <span class="aside">${plural(offsets.length, "partition")}</span></h2>
        <div class="panel scroll" tabindex="0" role="region" aria-label="Offsets">
          <table>
            <thead>
              <tr>
                <th scope="col">Topic</th>
                <th scope="col" class="num">Partition</th>
                <th scope="col" class="num">Offset</th>
                <th scope="col">Committed</th>
              </tr>
            </thead>
            <tbody>
              ${offsets.slice(0, MOST_OFFSETS).map(
                (each) =>
                  html`<tr>
                    <td>${each.topic}</td>
                    <td class="num">${each.partition}</td>
                    <td class="num">${each.offset}</td>
                    <td class="soft"><${Time} at=${each.time_ms} /></td>
                  </tr>`,
              )}
            </tbody>
          </table>
        </div>`
    }`;
}
