/** All epochs with the time in which tasks did not run, and why; one epoch explained down to each task. */

import { clock, count, plural, seconds } from "../format.js";
import { Component, html } from "../html.js";
import { get } from "../node.js";
import { Bar, Time } from "../parts.js";
import { refine } from "../route.js";
import { Table } from "../table.js";
import { short } from "./workers.js";

const LIMIT = 500;
const BARS = 120;
const LEAST_PLACES = 40;
const HEADS = [
  "Epoch",
  "When",
  "Cause",
  "Of",
  ["By", "narrow-out"],
  ["Moved", "num"],
  ["Started", "num"],
  ["Stayed", "num narrow-out"],
  ["Settled in", "num"],
];

export class History extends Component {
  constructor() {
    super();
    this.state = { list: null, epoch: null, why: "" };
  }

  componentDidMount() {
    this.read();
  }

  componentDidUpdate(before) {
    const { state, route } = this.props;
    if (before.route.parts[1] !== route.parts[1] || (state.epochs !== this.epochs && !this.isReading)) this.read();
  }

  async read() {
    const { state, route } = this.props;
    const path = `groups/${encodeURIComponent(state.group)}`;
    const chosen = route.parts[1];
    this.epochs = state.epochs; // replaced with each change of one of them
    this.isReading = true;
    try {
      const [list, epoch] = await Promise.all([
        get(`${path}/history?limit=${LIMIT}`),
        chosen ? get(`${path}/explain/${encodeURIComponent(chosen)}`) : null,
      ]);
      this.setState({ list, epoch, why: "" });
    } catch (refusal) {
      this.setState({ why: refusal.message });
    }
    this.isReading = false;
  }

  render({ state, route }, { list, epoch, why }) {
    const text = (route.query.get("q") ?? "").toLowerCase();
    const epochs = [...(list?.epochs ?? [])].reverse();
    const shown = epochs.filter(
      (each) =>
        !text || `${each.cause} ${each.subject} ${each.actor ?? ""} ${each.changed}`.toLowerCase().includes(text),
    );
    const first = list?.epochs[0];
    return html`<h1>Every epoch, and why</h1>
      <p class="sub">
        ${first ? `${plural(list.last_epoch ?? 0, "epoch")}, told from ${clock(first.time_ms)} on. Each second in which a task did not run is told by its cause.` : !why && "No epoch yet: the group has had no worker."}
        ${list?.compacted && ` What was before epoch ${list.first_epoch} is summed up: ${count(list.compacted.records)} records were trimmed on ${clock(list.compacted.compacted_ms)}.`}
      </p>
      ${why && html`<p class="note bad">${why}</p>`}
      <${DownBars} epochs=${state.epochs} />
      ${route.parts[1] && epoch && html`<${OneEpoch} epoch=${epoch} />`}
      <h2>
        Epochs
        <span class="filters"
          ><label class="hidden" for="epochs">Find by connector, worker, cause or person</label>
          <input
            id="epochs"
            class="chip"
            placeholder="connector, worker, cause, person"
            value=${route.query.get("q") ?? ""}
            onInput=${(event) => refine({ q: event.target.value })}
        /></span>
        <span class="aside"
          >${shown.length < epochs.length && `${count(shown.length)} of ${count(epochs.length)}`}</span
        >
      </h2>
      <${EpochTable} epochs=${shown} address="#/history" />`;
  }
}

/** Epochs in lines; `nameOf` names a worker by its address, or a member of another kind of group. */
export function EpochTable({ epochs, address, nameOf = short, noun = "task" }) {
  return html`<${Table}
    label="Epochs"
    heads=${HEADS}
    empty="Nothing that is told matches."
    rows=${epochs.map(
      (each) =>
        html`<tr key=${each.group_epoch}>
          <td>
            <a href="${address}/${each.group_epoch}"><b>${each.group_epoch}</b></a>
          </td>
          <td class="soft"><${Time} at=${each.time_ms} as="clock" /></td>
          <td>${words(each.cause)}</td>
          <td class="wide">${about(each, nameOf, noun)}</td>
          <td class="soft narrow-out">${each.actor}</td>
          <td class="num">${count(each.moved)}</td>
          <td class="num">${count(each.placed)}</td>
          <td class="num narrow-out">${count(each.kept)}</td>
          <td class="num">${seconds(each.settled_after_ms)}</td>
        </tr>`,
    )}
  />`;
}

/** The seconds in which tasks were down, epoch by epoch. */
function DownBars({ epochs }) {
  const shown = [...epochs].reverse().slice(-BARS);
  const places = Math.max(LEAST_PLACES, shown.length);
  const most = Math.max(1, ...shown.map((each) => each.down_sum_ms ?? 0));
  if (!shown.some((each) => each.down_sum_ms)) return null;
  return html`<div class="panel plot">
    <svg
      class="curve"
      viewBox="0 0 ${places * 10} 100"
      preserveAspectRatio="none"
      width="100%"
      height="130"
      role="group"
      aria-label="task-seconds down per epoch, at most ${seconds(most)}"
    >
      ${shown.map((each, at) => {
        const height = Math.max(1, ((each.down_sum_ms ?? 0) / most) * 92);
        return html`<a
          href="#/history/${each.epoch}"
          tabindex="-1"
          aria-label="epoch ${each.epoch}: ${seconds(each.down_sum_ms)}"
          ><rect
            x=${(places - shown.length + at) * 10 + 2}
            y=${100 - height}
            width="6"
            height=${height}
            fill=${each.parked ? "var(--wait)" : "var(--move)"}
            ><title>epoch ${each.epoch}: ${seconds(each.down_sum_ms)}, ${each.title}</title></rect
          ></a
        >`;
      })}
    </svg>
    <div class="legend">
      <span>task-seconds down per epoch, up to ${seconds(most)}</span><span><i class="cell m"></i>moved</span
      ><span><i class="cell w"></i>waited for a worker to come back</span>
    </div>
  </div>`;
}

/** One epoch, down to each task or partition; `nameOf` as in `EpochTable`. */
export function OneEpoch({ epoch, nameOf = short, noun = "task" }) {
  const downs = epoch.handovers
    .map((each) => each.downtime_ms)
    .filter((each) => each !== null && each !== undefined)
    .sort((one, other) => one - other);
  const change = epoch.target_change;
  return html`<h2>Epoch ${epoch.group_epoch} · ${clock(epoch.time_ms)}</h2>
    ${epoch.warning && html`<p class="note wait">${epoch.warning}</p>`}
    <div class="two">
      <${Table}
        label="What moved"
        heads=${[noun.replace(/^./, (letter) => letter.toUpperCase()), "From", "To", ["Down", "num"], ["", "narrow-out"], "Why"]}
        rows=${epoch.handovers.map(
          (each) =>
            html`<tr key=${each.id}>
              <td>${each.id}</td>
              <td>${each.from && nameOf(each.from.worker)}</td>
              <td>${each.to && nameOf(each.to.worker)}</td>
              <td class="num">${downWords(each)}</td>
              <td class="narrow-out"><${Bar} parts=${partsOf(each, epoch.time_ms)} /></td>
              <td class="wide" title=${each.detail}>${[each.reason, each.detail].filter(Boolean).join(": ")}</td>
            </tr>`,
        )}
        empty="Nothing moved."
      />
      <div class="panel">
        <dl class="pairs">
          <dt>Cause</dt>
          <dd>${words(epoch.cause)} ${nameOf(epoch.subject)}</dd>
          ${
            epoch.actor &&
            html`<dt>By</dt>
              <dd>${epoch.actor}</dd>`
          }
          ${
            epoch.changed &&
            html`<dt>Changed</dt>
              <dd>${epoch.changed}</dd>`
          }
          ${
            change?.parked.length > 0 &&
            html`<dt>Waited</dt>
              <dd>
                ${plural(change.parked.length, noun)} for the worker to come back, at most until${" "}
                ${clock(change.parked[0].deadline_ms)}
              </dd>`
          }
          <dt>Moved</dt>
          <dd>
            ${count(epoch.handovers.filter((each) => each.from).length)}${change ? `, ${count(change.kept.reduce((total, each) => total + each.resources.length, 0))} stayed` : ""}
          </dd>
          ${
            downs.length > 0 &&
            html`<dt>Down</dt>
              <dd>${seconds(downs[downs.length >> 1])} median, ${seconds(downs.at(-1))} longest</dd>`
          }
          <dt>Seen → decided</dt>
          <dd>${epoch.took_ms === null ? "not yet" : seconds(epoch.took_ms)}</dd>
          ${
            change &&
            html`<dt>Assignor</dt>
              <dd>
                ${change.assignor}${change.computed_by ? `, computed by ${nameOf(change.computed_by.worker)}` : ""}
              </dd>`
          }
          <dt>All runs again</dt>
          <dd>${epoch.total_ms === null ? "not yet" : seconds(epoch.total_ms)}</dd>
          ${epoch.phases.map(
            (each) =>
              html`<dt>${each.phase}</dt>
                <dd>${each.took_ms === null ? "" : seconds(each.took_ms)} ${each.note}</dd>`,
          )}
          ${epoch.waits.map(
            (each) =>
              html`<dt>Waited</dt>
                <dd>
                  for ${nameOf(each.seat.worker)}:${" "}
                  ${plural(each.resources.length, noun)}${each.until_ms ? `, ${seconds(each.until_ms - each.since_ms)}` : ""}${each.is_back ? ", and it came back" : ""}
                </dd>`,
          )}
        </dl>
      </div>
    </div>`;
}

/** A cause as words: "process ended". */
export function words(cause) {
  return cause.replaceAll("-", " ");
}

/** What an epoch is about, and who waited or came back. */
function about(each, nameOf, noun) {
  const waited = each.parked > 0 && `${plural(each.parked, noun)} waited for it`;
  const back = each.returned > 0 && `${plural(each.returned, noun)} back`;
  return [nameOf(each.subject), each.changed, waited, back].filter(Boolean).join(" · ");
}

export function downWords(each) {
  if (each.downtime_ms !== null && each.downtime_ms !== undefined) return seconds(each.downtime_ms);
  if (each.downtime_at_least_ms) return `≥ ${seconds(each.downtime_at_least_ms)}`;
  return "";
}

/** What of the time until it ran again was waiting, deciding and moving, in percent. */
function partsOf(each, cause) {
  const [stopped, granted, running] = [each.stopped_ms ?? each.gone_ms, each.granted_ms, each.running_ms];
  if (!granted || !running || running <= cause) return null;
  const whole = running - cause;
  const part = (from, until) => Math.max(0, Math.min(100, ((until - from) / whole) * 100));
  const waited = part(cause, stopped ?? granted);
  const decided = stopped ? part(stopped, granted) : 0;
  return [waited, decided, part(granted, running)];
}
