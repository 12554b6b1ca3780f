/** Workers and their tasks as a map that shows a move while it happens; drain, cordon and scale, the plan first. */

import { Button, say } from "../actions.js";
import { count, plural, seconds, size, span } from "../format.js";
import { Component, html } from "../html.js";
import { placed, TaskMap } from "../map.js";
import { ask } from "../node.js";
import { Curve, Shape, Time } from "../parts.js";
import { go, refine } from "../route.js";
import { Table } from "../table.js";

const MOST_MOVES = 200;
/** A worker that is heard of as it should has a low curve: the usual session is as high as the place. */
const USUAL_SESSION_MS = 10_000;
const HEADS = [
  "Worker",
  ["Host", "narrow-out"],
  ["Tasks", "num"],
  "CPU",
  ["Memory", "num"],
  ["Heartbeat", "num"],
  ["Restarts", "num"],
  "",
  "",
];

export class Workers extends Component {
  constructor() {
    super();
    this.state = { plan: null, wanted: null };
  }

  componentDidMount() {
    this.plan();
  }

  componentDidUpdate() {
    this.plan();
  }

  /** What the address asks to plan: `drain=w7` or `scale=orders:6`. */
  wanted() {
    const { query } = this.props.route;
    if (query.get("drain"))
      return {
        title: `Plan: drain ${query.get("drain")}`,
        body: { drain: [query.get("drain")] },
        kind: "drain",
        worker: query.get("drain"),
      };
    if (query.get("add"))
      return {
        title: `Plan: ${plural(Number(query.get("add")), "worker")} more`,
        body: { add_workers: Number(query.get("add")) },
        kind: "add",
      };
    if (query.get("scale")) {
      const [, name, tasks] = /^(.*):(\d+)$/.exec(query.get("scale")) ?? [];
      if (name)
        return {
          title: `Plan: ${name} with at most ${plural(Number(tasks), "task")}`,
          body: { scale: { [name]: Number(tasks) } },
          kind: "scale",
          name,
          tasks: Number(tasks),
        };
    }
    return null;
  }

  async plan() {
    const wanted = this.wanted();
    const key = JSON.stringify(wanted);
    if (key === this.asked) return;
    this.asked = key;
    this.setState({ plan: null });
    if (!wanted) return;
    try {
      const plan = await ask("POST", `groups/${encodeURIComponent(this.props.state.group)}/plan`, wanted.body);
      if (this.asked === key) this.setState({ plan });
    } catch (refusal) {
      say(refusal.message, true);
      this.cancel();
    }
  }

  cancel() {
    refine({ drain: "", add: "", scale: "" });
  }

  async carryOut(wanted) {
    try {
      if (wanted.kind === "drain") await ask("PUT", `workers/${encodeURIComponent(wanted.worker)}/drain`);
      if (wanted.kind === "scale")
        await ask("PATCH", `connectors/${encodeURIComponent(wanted.name)}/config`, {
          "tasks.max": String(wanted.tasks),
        });
      say("It is done as planned: the map shows the moves.");
      this.cancel();
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  async order(worker, what) {
    try {
      await ask("PUT", `workers/${encodeURIComponent(worker)}/${what}`);
      say(what === "cordon" ? `${worker} gets no more work, and keeps what it has.` : `${worker} may get work again.`);
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  render({ state, route }, { plan }) {
    const wanted = this.wanted();
    const moves = plan?.moves ?? [];
    const rows = placed(state, new Set(moves.map((each) => each.id)));
    const tasks = rows.reduce((total, each) => total + each.tasks.length, 0);
    const asTable = route.query.get("as") === "table";
    return html`<div class="head">
        <div>
          <h1>${wanted?.title ?? `${plural(state.workers.length, "worker")}, ${plural(tasks, "task")}`}</h1>
          <p class="sub">${wanted ? html`<${Summary} plan=${plan} epoch=${state.epoch} />` : levelOf(rows)}</p>
        </div>
        <div class="acts">
          ${wanted?.kind === "scale" && html`<label for="tasks">tasks at most</label> <input id="tasks" type="number" min="1" max="100000" value=${wanted.tasks} onChange=${(event) => Number(event.target.value) > 0 && refine({ scale: `${wanted.name}:${event.target.value}` })} />`}
          ${
            wanted &&
            html`<button type="button" onClick=${() => this.cancel()}>Cancel</button>
              ${wanted.kind !== "add" && html`<${Button} needs=${wanted.name ? "administer" : "operate"} connector=${wanted.name} kind="first" disabled=${!plan} onPress=${() => this.carryOut(wanted)}>${wanted.title.replace("Plan: ", "").replace(/^./, (each) => each.toUpperCase())}<//>`}`
          }
        </div>
      </div>
      <div class="panel pad">
        ${asTable ? html`<${AsTable} rows=${rows} workers=${state.workers} />` : html`<${TaskMap} rows=${rows} onChoose=${({ connector, task }) => go(["connectors", connector], { task: task.slice(connector.length + 1) })} />`}
        <div class="legend">
          <span><i class="cell"></i>running</span><span><i class="cell f"></i>failed</span
          ><span><i class="cell w"></i>waiting</span><span><i class="cell p"></i>paused</span
          ><span><i class="cell m"></i>${wanted ? "would move" : "moving"}</span> <span class="grow"></span
          ><button type="button" onClick=${() => refine({ as: asTable ? "" : "table" })}>
            ${asTable ? "as a map" : "the same as a table"}
          </button>
        </div>
      </div>
      ${plan?.warnings?.map((each) => html`<p class="note wait">${each}</p>`)}
      ${plan && html`<${Moves} moves=${moves} plan=${plan} />`}
      <h2>Workers</h2>
      <${Table}
        label="Workers"
        heads=${HEADS}
        rows=${state.workers.map(
          (each) =>
            html`<tr key=${each.name} aria-current=${route.query.get("worker") === each.name ? "true" : undefined}>
              <td class="name">
                <span class="state"
                  ><${Shape}
                    kind=${each.state === "running" ? (each.order ? "off" : "ok") : "wait"}
                    word=${each.order || each.state}
                  /><b>${each.name}</b></span
                >
              </td>
              <td class="soft narrow-out">${each.host}</td>
              <td class="num">${count(each.tasks)}</td>
              <td><${Curve} values=${each.history?.cpu} label="CPU in the last hour" /></td>
              <td class="num">${size(each.memory_bytes)}</td>
              <td class="num"><${Heartbeat} worker=${each} /></td>
              <td class="num">${count(each.restarts)}</td>
              <td class="wide">
                ${[each.order, each.state === "running" ? "" : each.state, each.detail].filter(Boolean).join(" · ")}${each.since_ms && html` ${each.state === "running" && "runs "}since <${Time} at=${each.since_ms} as="clock" />`}
              </td>
              <td>
                <span class="acts"
                  ><${Button} needs="operate" onPress=${() => this.order(each.name, each.order ? "uncordon" : "cordon")}
                    >${each.order ? "Uncordon" : "Cordon"}<//
                  ><${Button} needs="view" onPress=${() => refine({ drain: each.name, add: "", scale: "" })}
                    >Drain…<//
                  ></span
                >
              </td>
            </tr>`,
        )}
      />
      <p>
        <${Button} needs="view" onPress=${() => refine({ add: 1, drain: "", scale: "" })}
          >What if there were one more…<//
        >
      </p>`;
  }
}

/** How old the last heartbeat of a worker was at the last look of the node, and its last hour as a curve. */
function Heartbeat({ worker, bare }) {
  const values = worker.history?.heartbeat_age_ms;
  const words = beatWords(worker);
  return html`<span class="beat" title=${[words, worstWords(values)].filter(Boolean).join(" ")}
    ><span class=${isHeard(worker) ? "" : "soft"}>${isHeard(worker) ? span(worker.heartbeat_age_ms) : sends(worker) && "not known"}</span
    >${!bare && html`<${Curve} values=${values} least=${USUAL_SESSION_MS} label=${`Age of the last heartbeat. ${worstWords(values)}`} />`}</span
  >`;
}

/** Whether a worker sends heartbeats: it has joined, and did not leave for a while. */
function sends(worker) {
  return Boolean(worker.member_id) && worker.state !== "away";
}

function isHeard(worker) {
  return (worker.heartbeat_age_ms ?? null) !== null;
}

function beatWords(worker) {
  if (isHeard(worker))
    return `The last heartbeat was ${span(worker.heartbeat_age_ms)} old when the node last looked: every 15 seconds, and every two while one is late.`;
  if (!sends(worker)) return "It is no member now, and sends no heartbeats.";
  return "Not known: the process of the group does not answer, or has not heard of it since it was started.";
}

function worstWords(values) {
  const known = (values ?? []).filter((each) => each !== null);
  return known.length ? `In the last hour it was up to ${span(Math.max(...known))} old.` : "";
}

function levelOf(rows) {
  const loads = rows.filter((each) => each.name !== "nobody" && !each.order).map((each) => each.tasks.length);
  if (!loads.length) return "No worker takes tasks.";
  const [least, most] = [Math.min(...loads), Math.max(...loads)];
  return most - least <= 1
    ? `Level: every worker runs ${least === most ? least : `${least} or ${most}`} tasks.`
    : `Workers run from ${least} to ${most} tasks.`;
}

function Summary({ plan, epoch }) {
  if (!plan) return "The plan is being computed; nothing changes.";
  const times = plan.moves
    .map((each) => each.expected_downtime?.median_ms)
    .filter((each) => each !== undefined && each !== null);
  const down = times.length
    ? `Expected down: ${seconds(times.sort((one, other) => one - other)[times.length >> 1])} each; nothing else stops.`
    : "How long a move takes was not measured yet.";
  if (!plan.moves.length) return `No task that runs would move. Computed from epoch ${epoch}, changes nothing.`;
  const stays = plan.workers?.reduce((total, each) => total + each.stays, 0);
  return html`<span class="delta">${plural(plan.moves.length, "move")}</span
    >${stays !== undefined && `, ${count(stays)} stay`}. ${down} Computed from epoch ${epoch}, changes nothing.`;
}

function Moves({ moves, plan }) {
  const shown = (lines, how) =>
    lines.slice(0, MOST_MOVES).map((each) => {
      const [down, why] = how(each);
      return html`<tr>
        <td>${each.id}</td>
        <td>${each.giver && short(each.giver.worker)}</td>
        <td>${each.taker && short(each.taker.worker)}</td>
        <td class="num">${down}</td>
        <td class="wide">${why}</td>
      </tr>`;
    });
  const rows = [
    ...shown(moves, (each) => [
      each.expected_downtime ? seconds(each.expected_downtime.median_ms) : "not known",
      [each.reason, each.detail].filter(Boolean).join(": "),
    ]),
    ...shown(plan.starts ?? [], () => ["", "would start"]),
    ...shown(plan.stops ?? [], () => ["", "would stop"]),
  ];
  if (!rows.length) return html`<div class="panel empty">Nothing would move.</div>`;
  return html`<h2>What would happen</h2>
    <${Table} label="Moves" heads=${["Task", "From", "To", ["Expected down", "num"], "Why"]} rows=${rows} />
    ${moves.length > MOST_MOVES && html`<p class="soft">and ${count(moves.length - MOST_MOVES)} more moves</p>`}`;
}

/** The map in words: for the keyboard, and for who does not see it. */
function AsTable({ rows, workers }) {
  const heads = ["Tasks", "Running", "Failed", "Waiting", "Paused", "Moving", "Heartbeat"].map((each) => [each, "num"]);
  const known = new Map(workers.map((each) => [each.name, each]));
  return html`<${Table}
    label="Tasks by worker"
    bare
    heads=${["Worker", ...heads]}
    rows=${rows.map((row) => {
      const of = (letters) => row.tasks.filter((each) => letters.includes(each.letter)).length;
      return html`<tr>
        <th scope="row">${row.name}</th>
        <td class="num">${row.tasks.length}</td>
        ${["k", "f", "wu", "p", "m"].map((each) => html`<td class="num">${of(each)}</td>`)}
        <td class="num">${known.has(row.name) && html`<${Heartbeat} worker=${known.get(row.name)} bare />`}</td>
      </tr>`;
    })}
  />`;
}

/** A worker's name out of its address. */
export function short(url) {
  return url.replace(/^.*\//, "");
}
