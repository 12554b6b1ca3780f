/** The overview: the verdict, each trouble with what helps, four figures, the connectors worst first, the last epochs. */

import { Action, Button } from "../actions.js";
import { ConnectorTable } from "../connector-table.js";
import { count, exact, rate, seconds, size, span, spanWords, nodeNow } from "../format.js";
import { html } from "../html.js";
import { Curve, Epochs, Shape, Still, Time } from "../parts.js";
import { SOME } from "../rights.js";

const MOST_EPOCHS = 8;
const MOST_TROUBLES = 8;

export function Overview({ state, route }) {
  if (!Object.keys(state.connectors).length) return html`<${FirstSteps} state=${state} />`;
  return html`
    <h1>${state.verdict.title}</h1>
    <p class="sub">${state.verdict.text}</p>
    <${Troubles} troubles=${state.troubles} lines=${state.lines} />
    <${Figures} figures=${state.figures} />
    <div class="two">
      <div><${ConnectorTable} state=${state} query=${route.query} title="Connectors" /></div>
      <div>
        <h2>
          History <span class="aside"><a href="#/history">all epochs</a></span>
        </h2>
        <${Epochs} epochs=${state.epochs} most=${MOST_EPOCHS} />
      </div>
    </div>
  `;
}

/** What is wrong, the worst first, each with what helps most. */
export class Troubles extends Still {
  render({ troubles, lines, alone }) {
    if (!troubles.length) return null;
    return html`<div class="panel clip">
      ${troubles.slice(0, MOST_TROUBLES).map((each) => html`<${Trouble} key=${each.id} trouble=${each} lines=${lines} alone=${alone} />`)}
      ${troubles.length > MOST_TROUBLES && html`<div class="trouble"><p>and ${count(troubles.length - MOST_TROUBLES)} more; the table below has all of them, worst first.</p></div>`}
    </div>`;
  }
}

function Trouble({ trouble, lines, alone }) {
  const { connector, worker, kind } = trouble;
  const shape = kind === "failed" || kind === "disk" ? "bad" : "wait";
  const whose = alone
    ? null
    : connector
      ? html`<a href="#/connectors/${encodeURIComponent(connector)}">${connector}</a>`
      : worker && html`<a href="#/workers?worker=${encodeURIComponent(worker)}">${worker}</a>`;
  const actions = connector ? [...trouble.actions, "log"] : [];
  return html`<div class="trouble ${shape}">
    <${Shape} kind=${shape} />
    <span class="what"
      >${whose}${whose && " · "}${trouble.title}${trouble.since_ms && html`, <span title=${exact(trouble.since_ms)}>${spanWords(nodeNow() - trouble.since_ms)}</span>`}</span
    >
    <p>${sentence(trouble.text)} ${trouble.saved}</p>
    <span class="acts"
      >${[...new Set(actions)].map((id, at) => html`<${Action} key=${id} id=${id} name=${connector} reason=${trouble.text} first=${at === 0 && id !== "log"} />`)}</span
    >
    <${LastTry} trouble=${trouble} lines=${lines} />
  </div>`;
}

/** When somebody last tried to help, and what came of it. */
function LastTry({ trouble, lines }) {
  const last = lines.find(
    (each) =>
      trouble.connector && each.connector === trouble.connector && / (is|are) restarted| is resumed/.test(each.text),
  );
  if (!last) return null;
  const again = trouble.since_ms - last.time_ms;
  return html`<span class="past"
    ><${Time} at=${last.time_ms} as="clock" />:${" "}
    ${last.text}${again > 0 && `; the same again after ${span(again)}`}</span
  >`;
}

/** A reason with a full stop, so that what follows is a sentence of its own. */
function sentence(text) {
  return !text || /[.!?]$/.test(text) ? text : `${text}.`;
}

class Figures extends Still {
  render({ figures }) {
    const last = figures.last_rebalance;
    return html`<div class="figs">
      <div class="panel fig">
        <div class="label">Rows per second</div>
        <div class="number">${rate(figures.rows_per_second) || "0"}</div>
        <div class="detail">${figures.rows_today !== null && `${count(figures.rows_today)} today`}</div>
        <${Curve} values=${figures.history?.rows_per_second} label="rows per second in the last hour" />
      </div>
      <div class="panel fig">
        <div class="label">Farthest behind</div>
        <${Behind} ms=${figures.behind_ms} />
        <div class="detail">
          ${figures.behind_connector ? html`<a href="#/connectors/${encodeURIComponent(figures.behind_connector)}">${figures.behind_connector}</a>` : "nothing waits to be read"}
        </div>
        <${Curve} values=${figures.history?.behind_ms} label="how far behind in the last hour" />
      </div>
      <div class="panel fig">
        <div class="label">Last rebalance</div>
        <div class="number">
          ${last ? html`${seconds(last.down_ms ?? 0).replace(" s", "")} <small>s down</small>` : "none"}
        </div>
        <div class="detail">
          ${last && html`<a href="#/history/${last.epoch}">epoch ${last.epoch}</a> · ${count(last.moved)} of ${count(last.tasks)} moved`}
        </div>
      </div>
      <div class="panel fig">
        <div class="label">Workers</div>
        <div class="number">${count(figures.workers)} <small>of ${count(figures.workers_wanted)}</small></div>
        <div class="detail">
          ${figures.memory_bytes ? `${size(figures.memory_bytes)}${figures.memory_total_bytes ? ` of ${size(figures.memory_total_bytes)}` : ""}` : ""}${figures.engine && ` · engine ${figures.engine}`}
        </div>
      </div>
    </div>`;
  }
}

function Behind({ ms }) {
  const [number, unit] = ms ? span(ms).split(" ") : ["0", "s"];
  return html`<div class="number">
    ${number} <small>${{ s: "seconds", m: "minutes", h: "hours", d: "days" }[unit]}</small>
  </div>`;
}

/** What somebody sees who has no connector yet. */
function FirstSteps({ state }) {
  const examples = [
    [
      "Files to files",
      "Read CSV or JSON files of a folder, as they come, into parquet.",
      { from: "files", to: "files" },
    ],
    ["A table to files", "Follow the changes of a PostgreSQL table into a lake.", { from: "postgres", to: "files" }],
    [
      "A topic to a table",
      "Write the records of a Kafka topic into a PostgreSQL table, each once.",
      { from: "kafka", to: "postgres" },
    ],
  ];
  return html`<h1>No connector yet</h1>
    <p class="sub">
      A connector reads a source, and writes each row once to a sink. ${count(state.figures.workers)} workers wait for
      tasks. Begin with one of these, or with <a href="#/new"><u>an empty form</u></a
      >.
    </p>
    <div class="cards">
      ${examples.map(
        ([title, text, query]) =>
          html`<div class="panel card">
            <h3>${title}</h3>
            <p>${text}</p>
            <${Button} needs="administer" connector=${SOME} kind="first" href=${`#/new?${new URLSearchParams(query)}`}
              >Begin with this<//
            >
          </div>`,
      )}
    </div>
    <h2>From a terminal</h2>
    <div class="panel pad">
      <pre>
fairlead examples flights.yaml
fairlead create -f deploy/flights.yaml</pre>
    </div>`;
}
