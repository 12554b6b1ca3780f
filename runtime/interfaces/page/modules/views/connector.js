/** One connector: its way from source to sink, the last hour, its tasks, why it is where it is, offsets, config, dead letters. */

import { Action, Button, say } from "../actions.js";
import { behind, count, plural, rate, size } from "../format.js";
import { Component, html } from "../html.js";
import { ask, connectorPath, get } from "../node.js";
import { Lines, Shape, Time, taskWords } from "../parts.js";
import { HourPlot } from "../plot.js";
import { Offsets } from "../offsets.js";
import { Table } from "../table.js";
import { Versions } from "../versions.js";
import { Troubles } from "./overview.js";

const LETTERS = { k: "ok", f: "bad", w: "wait", u: "wait", p: "off", m: "move" };
const AGAIN_MS = 5_000;
const HEADS = [
  "Task",
  "Worker",
  ["Rows", "num"],
  ["Batches", "num narrow-out"],
  ["Behind", "num"],
  ["Last commit", "num"],
  "",
  "",
];

export class Connector extends Component {
  constructor(props) {
    super(props);
    this.state = { info: null, status: null, progress: null, lines: [], history: null };
  }

  componentDidMount() {
    this.read();
    this.timer = setInterval(() => document.hidden || this.read(), AGAIN_MS);
  }

  componentWillUnmount() {
    clearInterval(this.timer);
  }

  /** Read what only this view shows; what is in the state of the node comes by itself. */
  async read() {
    const name = this.props.route.parts[1];
    const { group, connectors } = this.props.state;
    if (!(name in connectors)) return;
    const paths = {
      info: `${connectorPath(name)}?extended=true`,
      status: `${connectorPath(name, "status")}?extended=true`,
      progress: connectorPath(name, "progress"),
      history: `${connectorPath(name, "history")}?minutes=60`,
      lines: `groups/${encodeURIComponent(group)}/events?connector=${encodeURIComponent(name)}`,
    };
    await Promise.all(
      Object.entries(paths).map(async ([field, path]) => {
        try {
          this.setState({ [field]: await get(path) });
        } catch (refusal) {
          if (field === "info" && refusal.status === 404) this.setState({ info: null });
        }
      }),
    );
  }

  render({ state, route }, { info, status, progress, lines, history }) {
    const name = route.parts[1];
    const row = state.connectors[name];
    if (!row)
      return html`<${Crumb} name=${name} />
        <h1>${name} is not there</h1>
        <p class="sub">No connector has this name now: it was deleted, or you may not see it.</p>`;
    const troubles = state.troubles.filter((each) => each.connector === name);
    const rests = row.state === "PAUSED" || row.state === "STOPPED";
    return html`
      <${Crumb} name=${name} />
      <div class="head">
        <div>
          <h1>
            <span class="state"><${Shape} kind=${row.shape} /><span>${name}</span></span>
          </h1>
          <p class="sub">
            ${[row.from, row.to].filter(Boolean).join(" → ")}${info?.delivery && `, ${info.delivery}`} ·${" "}
            ${taskWords(row.cells)}${row.changed_ms && html` · config of <${Time} at=${row.changed_ms} as="clock" />${row.changed_by && ` by ${row.changed_by}`}`}
          </p>
        </div>
        <div class="acts">
          ${rests ? html`<${Action} id="resume" name=${name} first=${true} />` : html`<${Action} id="pause" name=${name} />`}
          <${Action} id=${row.cells.includes("f") ? "restart" : "restart-all"} name=${name} />
          ${row.state !== "STOPPED" && html`<${Action} id="stop" name=${name} />`}
          <${Action} id="edit" name=${name} /><${Action} id="scale" name=${name} /><${Action}
            id="log"
            name=${name}
          /><${Action} id="delete" name=${name} />
        </div>
      </div>
      <${Troubles} troubles=${troubles} lines=${state.lines} alone=${true} />
      ${info?.warnings?.map((each) => html`<p class="note wait">${each}</p>`)}
      <p></p>
      <${Flow} row=${row} info=${info} progress=${progress} />
      <div class="two">
        <div>
          <h2>Last hour</h2>
          <${HourPlot} history=${history} />
          <h2>Tasks <span class="aside">${plural(row.cells.length, "task")}</span></h2>
          <${Tasks}
            name=${name}
            row=${row}
            workers=${state.workers}
            status=${status}
            progress=${progress}
            chosen=${route.query.get("task")}
          />
          <${Versions} name=${name} changed=${row.changed_ms} />
        </div>
        <div>
          <h2>Why it is where it is</h2>
          <${Lines} lines=${[...(lines.events ?? [])].reverse().slice(0, 12)} />
          <${Offsets} name=${name} committed=${row.last_commit_ms} isStopped=${row.state === "STOPPED"} />
          <h2>Dead letters</h2>
          <div class="panel pad">
            ${row.dead_letters ? html`<a href="#/letters?connector=${encodeURIComponent(name)}"><u>${plural(row.dead_letters, "bad row")}</u></a> kept beside the sink` : "No row was refused."}
          </div>
        </div>
      </div>
    `;
  }
}

function Crumb({ name }) {
  return html`<div class="crumb"><a href="#/connectors">Connectors</a> / ${name}</div>`;
}

/** The way of a row, from its source to its sink, with what is known of each step. */
function Flow({ row, info, progress }) {
  const config = info?.config ?? {};
  const sum = (field) => (progress?.tasks ?? []).reduce((total, each) => total + (each[field] ?? 0), 0);
  const [source, sink] = ["source", "sink"].map((side) => placeOf(config, side));
  const transforms = config.transforms?.split(",").map((each) => each.trim());
  return html`<div class="panel flow">
    <div class="step">
      <div class="label">Source</div>
      <div class="number">${source ?? row.from}</div>
      <div class="label">${row.from}</div>
    </div>
    <div class="step">
      <div class="label">Read</div>
      <div class="number">${rate(row.rows_per_second)} rows/s</div>
      <div class="label">${behind(row) === "0" ? "all is read" : behind(row)}</div>
    </div>
    <div class="step">
      <div class="label">Transform</div>
      <div class="number">${transforms?.join(", ") ?? "as they are"}</div>
      <div class="label">${transforms?.map((each) => config[`transforms.${each}.type`]).join(" · ")}</div>
    </div>
    <div class="step">
      <div class="label">Commit</div>
      <div class="number">${plural(sum("batches"), "batch", "batches")}</div>
      <div class="label"><${Time} at=${row.last_commit_ms} /></div>
    </div>
    <div class="step">
      <div class="label">Sink</div>
      <div class="number">${sink ?? row.to}</div>
      <div class="label">${row.to}${sum("bytes_out") ? ` · ${size(sum("bytes_out"))}` : ""}</div>
    </div>
  </div>`;
}

/** Where a connector reads or writes, as its config names it. */
function placeOf(config, side) {
  const keys = ["path", "topics", "topic", "tables", "table", "topic.pattern", "query"];
  const key = keys.find((each) => config[`${side}.${each}`]);
  return key && config[`${side}.${key}`];
}

function Tasks({ name, row, workers, status, progress, chosen }) {
  return html`<${Table}
    label="Tasks"
    heads=${HEADS}
    rows=${[...row.cells].map((letter, number) => {
      const told = status?.tasks[number];
      const done = progress?.tasks[number];
      const why = told?.reason || told?.trace?.split("\n")[0] || "";
      return html`<tr key=${number} aria-current=${chosen === String(number) ? "true" : undefined}>
        <td>
          <span class="state"><${Shape} kind=${LETTERS[letter]} /><span>${number}</span></span>
        </td>
        <td>
          <a href="#/workers?worker=${encodeURIComponent(workers[row.on[number]]?.name ?? "")}"
            >${workers[row.on[number]]?.name}</a
          >
        </td>
        <td class="num">${count(done?.rows_in)}</td>
        <td class="num narrow-out">${count(done?.batches)}</td>
        <td class="num">${done ? behind({ lag: done.lag }) : ""}</td>
        <td class="num soft"><${Time} at=${done?.last_commit_ms} /></td>
        <td class="wide" title=${why}>${why}</td>
        <td>
          <span class="acts">
            ${told?.trace && html`<button type="button" onClick=${() => show(told.trace)}>Trace</button>`}
            ${letter === "f" && html`<${Button} needs="operate" connector=${name} onPress=${() => restart(name, number)}>Restart<//>`}</span
          >
        </td>
      </tr>`;
    })}
    empty=${row.state === "STOPPED" ? "It is stopped: its tasks come back when it is resumed." : "It has no task yet: its worker is still asking the source how the work can be split."}
  />`;
}

/** Restart one task, and no other. */
async function restart(name, number) {
  try {
    await ask("POST", connectorPath(name, "tasks", String(number), "restart"));
    say(`${name}-${number} is being restarted.`);
  } catch (refusal) {
    say(`${name}-${number}: ${refusal.message}`, true);
  }
}

function show(trace) {
  say(html`<pre>${trace}</pre>`, true);
}
