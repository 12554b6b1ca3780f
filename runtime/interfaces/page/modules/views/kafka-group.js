/** One group of Kafka's clients: who has which partition, what is left to read, and each rebalance with its reason. */

import { groupPath, GroupReader, memberName, stateShape, unknownLag } from "../client-groups.js";
import { count, plural } from "../format.js";
import { Component, html } from "../html.js";
import { TaskMap } from "../map.js";
import { get } from "../node.js";
import { Shape, Time } from "../parts.js";
import { refine } from "../route.js";
import { RowTable, Table } from "../table.js";
import { downWords, EpochTable, OneEpoch, words } from "./history.js";

const LIMIT = 200;
const NAME_WIDTH = 168;
const ROW_HEIGHT = 35;
const LETTERS = { k: "assigned", m: "being given up", w: "on the way to a member", u: "of nobody" };
const MEMBER_HEADS = [
  "Member",
  "State",
  ["Partitions", "num"],
  ["Lag", "num"],
  ["Epoch", "num"],
  "Protocol",
  ["Client", "narrow-out"],
  ["Host", "narrow-out"],
];
const OFFSET_HEADS = [
  ["Topic"],
  ["Partition", "num"],
  ["Member", "narrow-out"],
  ["Committed", "num"],
  ["End", "num"],
  ["Lag", "num"],
  ["When"],
];
const MOVE_HEADS = ["Epoch", "When", "Why", "From", "To", ["Without a member", "num"]];

export class KafkaGroup extends Component {
  constructor() {
    super();
    this.state = { group: null, lag: null, list: null, epoch: null, moves: null, why: "" };
    this.reader = new GroupReader({
      read: () => this.read(),
      readLag: () => this.readLag(),
      concerns: (ids) => ids.includes(this.props.id),
    });
  }

  componentDidMount() {
    this.reader.start();
  }

  componentDidUpdate({ route }) {
    const [now, before] = [this.props.route, route];
    if (now.parts[2] !== before.parts[2] || now.query.get("partition") !== before.query.get("partition"))
      this.reader.now();
  }

  componentWillUnmount() {
    this.reader.stop();
  }

  async read() {
    const { id, route } = this.props;
    const [, , epoch] = route.parts;
    const partition = route.query.get("partition");
    try {
      const group = await get(groupPath(id)); // first: its refusal says which right is missing
      const list = await get(`${groupPath(id, "history")}?limit=${LIMIT}`);
      this.setState({ group, list, why: "" });
      const [told, moves] = await Promise.all([
        epoch ? get(groupPath(id, "explain", epoch)) : null,
        partition ? get(groupPath(id, "moves", partition)) : null,
      ]);
      this.setState({ epoch: told, moves });
    } catch (refusal) {
      this.setState({ epoch: null, moves: null, why: refusal.message });
    }
    await this.readLag();
  }

  async readLag() {
    try {
      this.setState({ lag: await get(groupPath(this.props.id, "lag")) });
    } catch {
      this.setState({ lag: null }); // what reads the group says why
    }
  }

  render({ id, route }, { group, lag, list, epoch, moves, why }) {
    if (!group)
      return html`<h1>${id}</h1>
        ${why ? html`<p class="note bad">${why}</p>` : html`<p class="sub">Reading the group …</p>`}`;
    const clients = { ...list?.clients, ...epoch?.clients, ...moves?.clients };
    for (const each of group.members) clients[each.member_id] = each;
    const nameOf = (member) => memberName(clients[member], member);
    const shown = matching(route.query.get("q"), group, nameOf);
    const address = `#/groups/${encodeURIComponent(id)}`;
    return html`<div class="head">
        <div>
          <h1>
            <span class="state"
              ><${Shape} kind=${stateShape(group.state)} word=${group.state} /><span>${id}</span></span
            >
          </h1>
          <p class="sub"><${Summary} group=${group} lag=${lag} nameOf=${nameOf} /></p>
        </div>
      </div>
      ${why && html`<p class="note bad">${why}</p>`} ${group.warning && html`<p class="note wait">${group.warning}</p>`}
      ${group.target.error && html`<p class="note bad">The last target could not be computed: ${group.target.error}</p>`}
      <h2>
        Partitions
        <span class="filters"
          ><label class="hidden" for="find-partition">Find by topic, partition or member</label
          ><input
            id="find-partition"
            class="chip"
            placeholder="topic, partition, member"
            value=${route.query.get("q") ?? ""}
            onInput=${(event) => refine({ q: event.target.value })}
        /></span>
      </h2>
      <${Partitions} group=${group} shown=${shown} nameOf=${nameOf} asTable=${route.query.get("as") === "table"} />
      ${epoch && html`<${OneEpoch} epoch=${epoch} nameOf=${nameOf} noun="partition" />`}
      ${moves && html`<${Moves} moves=${moves} nameOf=${nameOf} address=${address} />`}
      <${Members} group=${group} shown=${shown} lag=${lag} nameOf=${nameOf} />
      <${Offsets} lag=${lag} shown=${shown} nameOf=${nameOf} />
      <h2>
        ${group.type === "classic" ? "Generations" : "Epochs"}
        <span class="aside">${list?.epochs.length === LIMIT && `the latest ${LIMIT}`}</span>
      </h2>
      <${EpochTable}
        epochs=${[...(list?.epochs ?? [])].reverse()}
        address=${address}
        nameOf=${nameOf}
        noun="partition"
      />`;
  }
}

/** What of a group a filter shows: whether it shows a partition of a member. */
function matching(query, group, nameOf) {
  const text = (query ?? "").toLowerCase();
  const names = new Map(group.members.map((each) => [each.member_id, nameOf(each.member_id).toLowerCase()]));
  return (partition, member) =>
    !text || partition.toLowerCase().includes(text) || (names.get(member) ?? "").includes(text);
}

function Summary({ group, lag, nameOf }) {
  const { generation, last_rebalance: last } = group;
  const parts = [
    `${group.type}, ${group.state}`,
    generation
      ? `generation ${count(generation.generation)}${generation.leader ? `, led by ${nameOf(generation.leader)}` : ""}`
      : `epoch ${count(group.group_epoch)}`,
    (generation ? generation.protocol : group.target.assignor) || "",
    lag?.lag !== null && lag ? `${plural(lag.lag, "record")} left to read` : "",
  ];
  return html`${parts.filter(Boolean).join(" · ")}${last && html`. Last rebalance <${Time} at=${last.time_ms} />: ${words(last.cause)}, ${nameOf(last.subject)}.`}`;
}

/** The rows of the map: each member with its partitions, and those of nobody. */
function placed(group, shown, nameOf) {
  const cell = (each, letter) => ({ task: each.id, connector: each.connector, letter });
  const members = group.members.map((member) => {
    const leaving = new Set(member.pending_revocation.map((each) => each.id));
    const held = new Map([...member.assigned, ...member.pending_revocation].map((each) => [each.id, each]));
    const tasks = [...held.values()].sort(byPlace).filter((each) => shown(each.id, member.member_id));
    return {
      name: nameOf(member.member_id),
      isShown: tasks.length > 0 || shown("", member.member_id),
      tasks: tasks.map((each) => cell(each, leaving.has(each.id) ? "m" : "k")),
    };
  });
  const rows = members.filter((each) => each.isShown);
  const targeted = new Set(group.members.flatMap((each) => each.target.map((one) => one.id)));
  const free = group.unassigned.filter((each) => shown(each.id, "")).sort(byPlace);
  if (free.length)
    rows.push({ name: "nobody", tasks: free.map((each) => cell(each, targeted.has(each.id) ? "w" : "u")) });
  return rows;
}

function byPlace(one, other) {
  return one.connector < other.connector ? -1 : one.connector > other.connector ? 1 : one.task - other.task;
}

/** Members and their partitions as a map, or the same in words. */
function Partitions({ group, shown, nameOf, asTable }) {
  const rows = placed(group, shown, nameOf);
  const nothing = group.members.length ? "No partition or member matches." : "No member is here now: nobody reads.";
  if (!rows.length) return html`<div class="panel empty">${nothing}</div>`;
  return html`<div class="panel pad">
    ${
      asTable
        ? html`<${Table}
            label="Partitions by member"
            bare=${true}
            heads=${["Member", ["Partitions", "num"], "Has", "Gives up", "Waits for"]}
            rows=${rows.map((row) => {
              const of = (letters) =>
                row.tasks
                  .filter((each) => letters.includes(each.letter))
                  .map((each) => html`<${Partition} id=${each.task} /> `);
              return html`<tr>
                <th scope="row">${row.name}</th>
                <td class="num">${row.tasks.length}</td>
                <td class="wrap">${of("k")}</td>
                <td class="wrap">${of("m")}</td>
                <td class="wrap">${of("wu")}</td>
              </tr>`;
            })}
          />`
        : html`<${TaskMap}
            rows=${rows}
            words=${LETTERS}
            label="${plural(group.members.length, "member")}; partitions"
            left=${NAME_WIDTH}
            onChoose=${({ task }) => refine({ partition: task })}
          />`
    }
    <div class="legend">
      <span><i class="cell"></i>assigned</span><span><i class="cell m"></i>being given up</span
      ><span><i class="cell w"></i>on the way</span><span><i class="cell u"></i>of nobody</span>
      <span class="grow"></span
      ><button type="button" onClick=${() => refine({ as: asTable ? "" : "table" })}>
        ${asTable ? "as a map" : "the same as a table"}
      </button>
    </div>
  </div>`;
}

/** A partition that can be chosen, so that its moves are told. */
function Partition({ id, label = id }) {
  return html`<button type="button" class="plain" aria-label=${id} onClick=${() => refine({ partition: id })}>
    ${label}
  </button>`;
}

function Moves({ moves, nameOf, address }) {
  return html`<h2>
      Where ${moves.id} has been
      <span class="aside"><button type="button" onClick=${() => refine({ partition: "" })}>Close</button></span>
    </h2>
    <${Table}
      label="Moves of ${moves.id}"
      heads=${MOVE_HEADS}
      empty="It has not moved in the epochs that are told."
      rows=${[...moves.moves].reverse().map(
        ({ group_epoch: epoch, time_ms: at, causes, subjects, handover }) =>
          html`<tr>
            <td>
              <a href="${address}/${epoch}"><b>${epoch}</b></a>
            </td>
            <td class="soft"><${Time} at=${at} as="clock" /></td>
            <td class="wide">${causes.map((each, n) => `${words(each)} ${nameOf(subjects[n] ?? "")}`).join(", ")}</td>
            <td>${handover.from && nameOf(handover.from.member_id)}</td>
            <td>${handover.to && nameOf(handover.to.member_id)}</td>
            <td class="num">${downWords(handover)}</td>
          </tr>`,
      )}
    />`;
}

function Members({ group, shown, lag, nameOf }) {
  const lags = {};
  for (const each of lag?.partitions ?? [])
    if (each.lag !== null) lags[each.member_id] = (lags[each.member_id] ?? 0) + each.lag;
  const members = group.members.filter(
    (each) => shown("", each.member_id) || each.assigned.some((one) => shown(one.id, "")),
  );
  return html`<h2>Members <span class="aside">${count(group.members.length)}</span></h2>
    <${Table}
      label="Members"
      heads=${MEMBER_HEADS}
      empty=${group.members.length ? "No member matches." : "No member now."}
      rows=${members.map(
        (each) =>
          html`<tr key=${each.member_id}>
            <td class="name" title=${each.member_id}><b>${nameOf(each.member_id)}</b></td>
            <td>${each.state.toLowerCase().replaceAll("_", " ")}</td>
            <td class="num">${count(each.assigned.length)}</td>
            <td class="num">${count(lags[each.member_id])}</td>
            <td class="num">${count(each.member_epoch)}</td>
            <td>${each.protocol}</td>
            <td class="narrow-out">${each.client_id}</td>
            <td class="soft narrow-out">${(each.client_host ?? "").replace(/^\//, "")}</td>
          </tr>`,
      )}
    />`;
}

function Offsets({ lag, shown, nameOf }) {
  if (!lag) return null;
  const rows = lag.partitions.filter((each) => shown(`${each.topic}-${each.partition}`, each.member_id));
  return html`<h2>
      Offsets
      <span class="aside"
        >${plural(lag.total, "partition")}${lag.total > lag.partitions.length ? `, the first ${count(lag.partitions.length)} are here` : ""}</span
      >
    </h2>
    ${lag.message && html`<p class="note wait">${unknownLag(lag.lag !== null)}: ${lag.message}.</p>`}
    ${
      rows.length
        ? html`<${RowTable}
            label="Offsets"
            columns=${OFFSET_HEADS.length}
            height=${ROW_HEIGHT}
            head=${OFFSET_HEADS.map(([text, kind]) => html`<th scope="col" class=${kind}>${text}</th>`)}
            rows=${rows}
            row=${(each) => html`<${Offset} key=${`${each.topic}-${each.partition}`} of=${each} nameOf=${nameOf} />`}
          />`
        : html`<div class="panel empty">Nothing was committed, and no member has a partition.</div>`
    }`;
}

function Offset({ of, nameOf }) {
  return html`<tr>
    <td class="name">${of.topic}</td>
    <td class="num"><${Partition} id="${of.topic}-${of.partition}" label=${of.partition} /></td>
    <td class="narrow-out">${of.member_id && nameOf(of.member_id)}</td>
    <td class="num">${of.offset === null ? "nothing" : of.offset}</td>
    <td class="num">${of.end}</td>
    <td class="num">${of.lag === null ? "" : count(of.lag)}</td>
    <td class="soft"><${Time} at=${of.committed_ms} /></td>
  </tr>`;
}
