/** The connectors as a table: worst first, or by a column; filtered by state and name, as the address says. */

import { actOnAll, Button } from "./actions.js";
import { behind, count, rate } from "./format.js";
import { Component, html } from "./html.js";
import { Cells, Curve, Shape, Sorted, Still, Time } from "./parts.js";
import { refusal, SOME } from "./rights.js";
import { refine } from "./route.js";
import { store } from "./store.js";
import { RowTable } from "./table.js";

const ROW_HEIGHT = 36;
const WORST_FIRST = ["bad", "wait", "ok", "off"];
const CHIPS = [
  ["", "all"],
  ["bad", "failed"],
  ["wait", "waiting"],
  ["off", "paused"],
];
const ORDERS = {
  name: (name) => name,
  rows: (_, row) => row.rows_per_second,
  behind: (_, row) => row.behind_ms ?? row.lag?.bytes ?? row.lag?.records ?? 0,
  commit: (_, row) => row.last_commit_ms ?? 0,
};
const BULK = [
  ["restart", "Restart failed"],
  ["pause", "Pause"],
  ["resume", "Resume"],
];

export class ConnectorTable extends Component {
  constructor() {
    super();
    this.key = "";
    this.names = [];
  }

  /** The names in their order, found anew only when a filter or the order of worst first changes. */
  ordered(state, query) {
    const [shape, text, sort] = ["state", "q", "sort"].map((each) => query.get(each) ?? "");
    const key = [shape, text, sort, store.order].join("\n");
    if (key === this.key) return this.names;
    const wanted = text.toLowerCase();
    const names = Object.keys(state.connectors).filter((name) => {
      const row = state.connectors[name];
      return (
        (!shape || row.shape === shape) && (!wanted || `${name} ${row.from} ${row.to}`.toLowerCase().includes(wanted))
      );
    });
    names.sort((one, other) => (one < other ? -1 : 1));
    const by = sort.replace("-", "");
    if (ORDERS[by]) {
      const value = new Map(names.map((name) => [name, ORDERS[by](name, state.connectors[name])]));
      names.sort((one, other) => (value.get(one) < value.get(other) ? -1 : value.get(one) > value.get(other) ? 1 : 0));
      if (sort.startsWith("-")) names.reverse();
    } else {
      const rank = (name) => WORST_FIRST.indexOf(state.connectors[name].shape);
      names.sort((one, other) => rank(one) - rank(other));
    }
    this.key = key;
    this.names = names;
    return names;
  }

  render({ state, query, title, isWhole }) {
    const names = this.ordered(state, query).filter((name) => name in state.connectors);
    const sort = query.get("sort") ?? "";
    const sorted = { by: sort.replace("-", ""), down: sort.startsWith("-") };
    const onSort = (by) =>
      refine({
        sort:
          sorted.by !== by
            ? by === "name"
              ? by
              : `-${by}`
            : sorted.down === (by !== "name")
              ? by === "name"
                ? `-${by}`
                : by
              : "",
      });
    const sums = { ...store.sums, "": Object.keys(state.connectors).length };
    return html`<h2>
        ${title}
        <span class="filters"
          >${CHIPS.map(
            ([shape, word]) =>
              (shape === "" || sums[shape] > 0) &&
              html`<button
                type="button"
                class="chip"
                aria-pressed=${(query.get("state") ?? "") === shape}
                onClick=${() => refine({ state: shape })}
              >
                ${word} ${count(sums[shape])}
              </button>`,
          )}
          ${isWhole && html`<label class="hidden" for="filter">Filter by name</label><input id="filter" class="chip" placeholder="name contains …" value=${query.get("q") ?? ""} onInput=${(event) => refine({ q: event.target.value })} />`}
        </span>
        <span class="aside">${sort ? "" : "worst first"}</span>
      </h2>
      ${
        isWhole &&
        html`<${Bulk} names=${names} />
          <p></p>`
      }
      <${RowTable}
        label="Connectors"
        rows=${names}
        height=${ROW_HEIGHT}
        columns="7"
        head=${html`<${Sorted} name="name" label="Connector" sort=${sorted} onSort=${onSort} />
          <th scope="col" class="narrow-out">From → to</th>
          <th scope="col">Tasks</th>
          <${Sorted} name="rows" label="Rows/s" num=${true} sort=${sorted} onSort=${onSort} />
          <th scope="col" class="narrow-out">Last hour</th>
          <${Sorted} name="behind" label="Behind" num=${true} sort=${sorted} onSort=${onSort} />
          <${Sorted} name="commit" label="Last commit" num=${true} sort=${sorted} onSort=${onSort} />`}
        row=${(name, at) => html`<${Row} key=${name} name=${name} at=${at} row=${state.connectors[name]} />`}
      />
      ${!names.length && html`<div class="panel empty">No connector is like this. <button type="button" onClick=${() => refine({ state: "", q: "" })}>Show all</button></div>`}`;
  }
}

/** What is done to all that are shown, as far as the caller may. */
function Bulk({ names }) {
  const may = names.filter((name) => !refusal("operate", name));
  const whose = may.length && may.length < names.length ? `${count(may.length)} of` : "all";
  return html`<div class="acts">
    ${BULK.map(
      ([id, label]) =>
        html`<${Button}
          needs="operate"
          connector=${may[0] ?? names[0] ?? SOME}
          disabled=${!names.length}
          onPress=${() => actOnAll(id, may)}
          >${label}: ${whose} ${count(names.length)} shown<//
        >`,
    )}
  </div>`;
}

class Row extends Still {
  render({ name, row, at }) {
    return html`<tr aria-rowindex=${at + 2} style=${{ height: `${ROW_HEIGHT}px` }}>
      <td class="name">
        <span class="state"
          ><${Shape} kind=${row.shape} /><a href="#/connectors/${encodeURIComponent(name)}" title=${row.reason || name}
            ><b>${name}</b></a
          ></span
        >
      </td>
      <td class="wide narrow-out">${[row.from, row.to].filter(Boolean).join(" → ")}</td>
      <td><${Cells} cells=${row.cells} /></td>
      <td class="num">${rate(row.rows_per_second)}</td>
      <td class="narrow-out">
        ${row.shape !== "off" && html`<${Curve} values=${row.history?.rows_per_second} label="rows per second in the last hour" />`}
      </td>
      <td class="num">${behind(row)}</td>
      <td class="num soft"><${Time} at=${row.last_commit_ms} /></td>
    </tr>`;
  }
}
