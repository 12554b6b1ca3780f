/** Groups of Kafka's clients at the listener: a page of them at a time, and the one that was chosen. */

import { GroupReader, listenerAddress, stateShape, unknownLag } from "../client-groups.js";
import { count, plural } from "../format.js";
import { Component, html } from "../html.js";
import { get } from "../node.js";
import { Shape } from "../parts.js";
import { addressOf, refine } from "../route.js";
import { Table } from "../table.js";
import { KafkaGroup } from "./kafka-group.js";

const TYPES = ["classic", "consumer", "connect"];
const STATES = ["Stable", "Empty", "Assigning", "Reconciling", "CompletingRebalance", "Dead"];
const SHOWN = 50;
const FILTERS = ["text", "type", "state", "after"];
const HEADS = [
  "Group",
  "Type",
  "State",
  ["Lag", "num"],
  ["Members", "num"],
  ["Partitions", "num"],
  ["Epoch", "num"],
  "Assignor",
];

export function Groups({ state, route }) {
  const [, id] = route.parts;
  return id
    ? html`<${KafkaGroup} key=${id} id=${id} route=${route} />`
    : html`<${GroupList} state=${state} route=${route} />`;
}

class GroupList extends Component {
  constructor() {
    super();
    this.state = { list: null, why: "", listener: null };
    this.reader = new GroupReader({
      read: () => this.read(),
      readLag: () => this.read(),
      concerns: () => true,
    });
  }

  componentDidMount() {
    this.reader.start();
  }

  componentDidUpdate(before) {
    if (before.route !== this.props.route) this.reader.now();
  }

  componentWillUnmount() {
    this.reader.stop();
  }

  /** The groups of the address at first without lag: a broker that hangs keeps nobody from seeing them. */
  async read() {
    const { query } = this.props.route;
    const asked = new URLSearchParams(FILTERS.map((each) => [each, query.get(each) ?? ""]));
    asked.set("limit", SHOWN + 1); // the one behind them says whether there are more
    const path = `client-groups?${asked}`;
    try {
      if (path !== this.path) this.setState({ list: await get(path), why: "" });
      this.path = path;
      this.setState({ list: await get(`${path}&lag=true`), why: "" });
      if (!this.state.list.total && this.state.listener === null) this.setState({ listener: await listenerAddress() });
    } catch (refusal) {
      this.setState({ why: refusal.message });
    }
  }

  render({ state, route }, { list, why, listener }) {
    const { query } = route;
    const isFiltered = ["text", "type", "state"].some((each) => query.get(each));
    const groups = list?.groups.slice(0, SHOWN) ?? [];
    const hasMore = list?.groups.length > SHOWN;
    return html`<h1>${list ? plural(list.total, "Kafka group") : "Kafka groups"}</h1>
      <p class="sub">
        Consumers and other clients of Kafka whose groups this node coordinates. Its own workers are group
        <a href="#/workers"> ${state.group}</a>.
      </p>
      ${why && html`<p class="note bad">${why}</p>`}
      ${list?.total > 0 && list.message && html`<p class="note wait">${unknownLag(list.groups.some((each) => Number.isInteger(each.lag)))}: ${list.message}.</p>`}
      ${list && !list.total && html`<${Nobody} listener=${listener} />`}
      ${list?.total > 0 && html`<${Filters} query=${query} shown=${isFiltered ? `${count(list.matching)} of ${count(list.total)}` : ""} />`}
      ${list?.total > 0 && html`<${Table} label="Groups" heads=${HEADS} empty="No group matches." rows=${groups.map((each) => html`<${Row} key=${each.group_id} group=${each} />`)} />`}
      <p class="acts">
        ${query.get("after") && html`<a class="button" href=${addressOf(["groups"], { ...Object.fromEntries(query), after: "" })}>First groups</a>`}
        ${hasMore && html`<a class="button" href=${addressOf(["groups"], { ...Object.fromEntries(query), after: groups.at(-1).group_id })}>Next groups</a>`}
      </p>`;
  }
}

function Filters({ query, shown }) {
  const choose = (name, values) =>
    html`<label class="hidden" for="group-${name}">Only this ${name}</label
      ><select id="group-${name}" class="chip" onChange=${(event) => refine({ [name]: event.target.value, after: "" })}>
        <option value="">any ${name}</option>
        ${values.map((each) => html`<option value=${each} selected=${query.get(name) === each}>${each}</option>`)}
      </select>`;
  return html`<h2>
    Groups
    <span class="filters"
      ><label class="hidden" for="group-text">Find a group by a part of its name</label
      ><input
        id="group-text"
        class="chip"
        placeholder="part of a name"
        value=${query.get("text") ?? ""}
        onInput=${(event) => refine({ text: event.target.value, after: "" })}
      />
      ${choose("type", TYPES)} ${choose("state", STATES)}</span
    >
    <span class="aside">${shown}</span>
  </h2>`;
}

function Row({ group }) {
  return html`<tr>
    <td class="name">
      <span class="state"
        ><${Shape} kind=${stateShape(group.state)} word=${group.state} /><a
          href="#/groups/${encodeURIComponent(group.group_id)}"
          ><b>${group.group_id}</b></a
        ></span
      >
    </td>
    <td>${group.type}</td>
    <td>${group.state}</td>
    <td class="num">${count(group.lag)}</td>
    <td class="num">${count(group.members)}</td>
    <td class="num">${count(group.assigned)}</td>
    <td class="num">${count(group.group_epoch)}</td>
    <td>${group.assignor}</td>
  </tr>`;
}

/** What to do so that there is a group. */
function Nobody({ listener }) {
  const [, address] = /^\w+:\/\/(.+)$/.exec(listener ?? "") ?? [];
  return html`<div class="panel empty">
    ${
      address
        ? html`<h3>No client has joined a group yet</h3>
            <p>Give this address to a consumer, and it is here with what it reads as soon as it has joined:</p>
            <pre>
bootstrap.servers=${address}
group.id=billing</pre>`
        : html`<h3>This node does not listen for Kafka's clients</h3>
            <p>
              It can be the coordinator of their groups, and explain each rebalance. The brokers keep the topics. Start
              it with:
            </p>
            <pre>
fairlead up --set kafka.listeners=PLAINTEXT://127.0.0.1:19092 --set kafka.bootstrap.servers=broker:9092</pre>
            <p>Clients then get <code>127.0.0.1:19092</code> as their <code>bootstrap.servers</code>.</p>`
    }
  </div>`;
}
