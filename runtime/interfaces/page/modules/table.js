/** Tables in their frame: of some rows, or of any length, when only the rows near the window exist. */

import { Component, createRef, html } from "./html.js";

const AROUND = 10;
/** Rows come and go so many at once: between that, a frame of scrolling changes nothing. */
const TOGETHER = 8;
const ALL_UP_TO = 60;

/**
 * A table of some `rows`, each a `<tr>`; `empty` is said where there is none.
 *
 * A head is a text, or the text with the class of its column: `["Tasks", "num"]`. A `bare` one stands in a panel.
 */
export function Table({ label, heads, rows, empty, bare }) {
  const head = heads.map((each) => {
    const [text, kind] = [each].flat();
    return html`<th scope="col" class=${kind}>${text}</th>`;
  });
  const nothing =
    empty &&
    html`<tr>
      <td colspan=${heads.length} class="soft">${empty}</td>
    </tr>`;
  return html`<${Frame} label=${label} head=${head} bare=${bare}>${rows.length ? rows : nothing}<//>`;
}

/** A table that scrolls by itself where the window is narrower than it. */
function Frame({ label, head, count, body, bare, children }) {
  return html`<div class=${bare ? "scroll" : "panel scroll"} tabindex="0" role="region" aria-label=${label}>
    <table aria-rowcount=${count}>
      <thead>
        <tr>
          ${head}
        </tr>
      </thead>
      <tbody ref=${body}>
        ${children}
      </tbody>
    </table>
  </div>`;
}

/** A long table: `rows` are drawn by `row(each, index)`, a `<tr>` of `height` pixels each; `head` has the heads. */
export class RowTable extends Component {
  constructor() {
    super();
    this.body = createRef();
    this.state = { first: 0, last: AROUND };
    this.look = () => {
      this.waits ??= requestAnimationFrame(() => {
        this.waits = null;
        this.fit();
      });
    };
  }

  componentDidMount() {
    addEventListener("scroll", this.look, { passive: true });
    addEventListener("resize", this.look);
    this.fit();
  }

  /** What stands above may have moved the table. In the next frame it is laid out anyway. */
  componentDidUpdate() {
    this.look();
  }

  componentWillUnmount() {
    removeEventListener("scroll", this.look);
    removeEventListener("resize", this.look);
    cancelAnimationFrame(this.waits);
  }

  fit() {
    const { rows, height } = this.props;
    const top = this.body.current?.getBoundingClientRect().top ?? 0;
    const first = Math.floor(Math.max(0, -top / height - AROUND) / TOGETHER) * TOGETHER;
    const last = Math.ceil((Math.max(0, (innerHeight - top) / height) + AROUND) / TOGETHER) * TOGETHER;
    if (rows.length > ALL_UP_TO && (first !== this.state.first || last !== this.state.last))
      this.setState({ first, last });
  }

  render({ rows, row, head, height, columns, label }, { first, last }) {
    const isWhole = rows.length <= ALL_UP_TO;
    const [from, to] = isWhole ? [0, rows.length] : [first, last].map((each) => Math.min(each, rows.length));
    const spacer = (number) =>
      number > 0 &&
      html`<tr class="spacer" aria-hidden="true">
        <td colspan=${columns} style=${{ height: `${number * height}px` }}></td>
      </tr>`;
    return html`<${Frame} label=${label} head=${head} count=${rows.length + 1} body=${this.body}>
      ${spacer(from)}${rows.slice(from, to).map((each, at) => row(each, from + at))}${spacer(rows.length - to)}
    <//>`;
  }
}
