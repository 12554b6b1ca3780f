/** The small parts that all views are made of: shapes of states, ages, cells of tasks, curves, rows of happenings. */

import { age, clock, count, exact, nodeNow, plural, span } from "./format.js";
import { Component, html } from "./html.js";

const SHAPE_WORDS = { bad: "failed", wait: "waits", ok: "runs", off: "paused or stopped", move: "moves" };
const CELL_WORDS = { k: "running", f: "failed", w: "waiting", p: "paused", m: "moving", u: "unassigned" };
const MOST_CELLS = 24;
const CELL_STEP = 11;
/** The outline of a task's cell, 9 wide and 14 high, whose left edge is at `x`. */
const OUTLINES = {
  k: (x) => `M${x + 2} 0h5q2 0 2 2v10q0 2-2 2h-5q-2 0-2-2v-10q0-2 2-2z`,
  f: (x) => `M${x} 0h9v14h-9z`,
  w: (x) => `M${x + 1} 1h7v12h-7z`,
  u: (x) => `M${x + 1} 1h7v12h-7z`,
  p: (x) => `M${x + 0.75} .75h7.5v12.5h-7.5z`,
  m: (x) => `M${x} 0h5.4l3.6 7-3.6 7h-5.4z`,
};

/** A part of a view that is drawn anew when it is given other values, and each second for the ages in it. */
export class Still extends Component {
  shouldComponentUpdate(next) {
    const second = Math.floor(Date.now() / 1000);
    const isSame = second === this.second && Object.keys(next).every((each) => next[each] === this.props[each]);
    this.second = second;
    return !isSame;
  }
}

/** A state by shape and word: a square is bad, a triangle waits, a disc is fine, a ring rests, an arrow moves. */
export function Shape({ kind, word }) {
  const drawn = {
    bad: html`<rect x="1.5" y="1.5" width="9" height="9" />`,
    wait: html`<path d="M6 1 11.5 11H.5z" />`,
    ok: html`<circle cx="6" cy="6" r="4" />`,
    off: html`<circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" stroke-width="1.6" />`,
    move: html`<path d="M1 2h6l4 4-4 4H1z" />`,
  };
  return html`<span class="shape ${kind}"
    ><svg viewBox="0 0 12 12" fill="currentColor" aria-hidden="true">${drawn[kind]}</svg
    ><span class="hidden">${word ?? SHAPE_WORDS[kind]}: </span></span
  >`;
}

/** A time as its age, or as the time of day; exact under the pointer. */
export function Time({ at, as = "age" }) {
  if (!at) return null;
  const text = as === "age" ? age(at) : as === "span" ? span(Math.max(0, nodeNow() - at)) : clock(at);
  return html`<time datetime=${new Date(at).toISOString()} title=${exact(at)}>${text}</time>`;
}

/**
 * The tasks of a connector, a cell for each; the same in words for who does not see them.
 *
 * All cells of a letter are one outline: a table has hundreds of them, and each element costs with every frame.
 */
export class Cells extends Component {
  shouldComponentUpdate(next) {
    return next.cells !== this.props.cells;
  }

  render({ cells }) {
    const counts = {};
    for (const letter of cells) counts[letter] = (counts[letter] ?? 0) + 1;
    const words = Object.entries(counts)
      .map(([letter, number]) => `${number} ${CELL_WORDS[letter]}`)
      .join(", ");
    const worst = [...cells].sort((one, other) => "fwumpk".indexOf(one) - "fwumpk".indexOf(other));
    const shown = cells.length > MOST_CELLS ? worst.slice(0, MOST_CELLS) : [...cells];
    const outlines = {};
    shown.forEach((letter, at) => (outlines[letter] = (outlines[letter] ?? "") + OUTLINES[letter](at * CELL_STEP)));
    return html`<span class="cells" role="img" aria-label=${words || "no tasks"} title=${words || "no tasks"}>
      <svg width=${shown.length * CELL_STEP} height="14">
        ${Object.entries(outlines).map(([letter, outline]) => html`<path key=${letter} class=${letter} d=${outline} />`)}
      </svg>
      ${cells.length > MOST_CELLS && html`<span class="more">of ${count(cells.length)}</span>`}
    </span>`;
  }
}

/** A curve of numbers from 0 up to the highest, or to `least`; the latest on the right, gaps where none is known. */
export class Curve extends Component {
  shouldComponentUpdate(next) {
    return next.values !== this.props.values;
  }

  render({ values, label, least = 0 }) {
    const known = (values ?? []).filter((each) => each !== null);
    if (known.length < 2) return null;
    const top = Math.max(...known, least) || 1;
    const step = 100 / (values.length - 1);
    let line = "",
      area = "",
      start = null;
    values.forEach((value, at) => {
      if (value === null) {
        if (start !== null) area += `L${((at - 1) * step).toFixed(2)} 40Z`;
        start = null;
        return;
      }
      const point = `${(at * step).toFixed(2)} ${(39 - (value / top) * 36).toFixed(2)}`;
      line += `${start === null ? "M" : "L"}${point}`;
      area += start === null ? `M${(at * step).toFixed(2)} 40L${point}` : `L${point}`;
      start ??= at;
    });
    if (start !== null) area += "L100 40Z";
    return html`<svg class="curve" viewBox="0 0 100 40" preserveAspectRatio="none" role="img" aria-label=${label}>
      <path class="area" d=${area} />
      <path class="stroke" d=${line} />
    </svg>`;
  }
}

/** How long a rebalance took, by its parts. */
export function Bar({ parts }) {
  if (!parts) return null;
  const names = ["waited", "decided", "moved"];
  return html`<span class="bar" aria-hidden="true">
    ${names.map((name, at) => html`<i class=${name} style=${{ width: `${parts[at]}%` }}></i>`)}
  </span>`;
}

/** The latest of all epochs, as many as asked for, each with what happened and why. */
export class Epochs extends Still {
  render({ epochs, most }) {
    if (!epochs.length) return html`<div class="panel empty">Nothing has happened yet that you may see.</div>`;
    return html`<div class="panel">
      ${epochs.slice(0, most).map(
        (each) =>
          html`<div class="happened" key=${each.epoch}>
            <${Time} at=${each.time_ms} as="clock" />
            <a href="#/history/${each.epoch}"><b>${each.title}</b></a>
            <span class="why">${each.text}</span>
            <${Bar} parts=${each.bar} />
          </div>`,
      )}
    </div>`;
  }
}

/** What the log has told, one line after the other. */
export function Lines({ lines }) {
  if (!lines.length) return html`<div class="panel empty">Nothing is told of it yet.</div>`;
  return html`<div class="panel">
    ${lines.map(
      (each) =>
        html`<div class="happened">
          <${Time} at=${each.time_ms} as="clock" />
          <span class="clamped" title=${each.text}
            >${each.type === "Warning" && html`<${Shape} kind="wait" word="warning" /> `}${each.text}</span
          >
          ${each.epoch && html`<span class="why"><a href="#/history/${each.epoch}">epoch ${each.epoch}</a></span>`}
        </div>`,
    )}
  </div>`;
}

/** A head of a column by which its table can be sorted. */
export function Sorted({ name, label, sort, onSort, num }) {
  const way = sort.by === name ? (sort.down ? "descending" : "ascending") : undefined;
  return html`<th scope="col" class=${num ? "num" : ""} aria-sort=${way}>
    <button type="button" onClick=${() => onSort(name)}>${label}${way && (sort.down ? " ↓" : " ↑")}</button>
  </th>`;
}

/** How many tasks are in trouble, in words. */
export function taskWords(cells) {
  const failed = [...cells].filter((each) => each === "f").length;
  return failed ? `${failed} of ${plural(cells.length, "task")} failed` : plural(cells.length, "task");
}

/** A text of the reference: what stands between backticks is code. */
export function Prose({ text }) {
  return text.split("`").map((part, at) => (at % 2 ? html`<code>${part}</code>` : part));
}
