/** A table of any length, of which only the rows near the window exist. */

import { Component, createRef, html } from "./html.js";

const AROUND = 10;
const ALL_UP_TO = 60;

/** `rows` are drawn by `row(each, index)`, a `<tr>` of `height` pixels each; `head` is the row of heads. */
export class RowTable extends Component {
  constructor() {
    super();
    this.body = createRef();
    this.state = { first: 0, last: ALL_UP_TO };
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

  componentDidUpdate() {
    this.fit();
  }

  componentWillUnmount() {
    removeEventListener("scroll", this.look);
    removeEventListener("resize", this.look);
    cancelAnimationFrame(this.waits);
  }

  fit() {
    const { rows, height } = this.props;
    const top = this.body.current?.getBoundingClientRect().top ?? 0;
    const first = Math.max(0, Math.floor(-top / height) - AROUND);
    const last = Math.min(rows.length, Math.ceil((innerHeight - top) / height) + AROUND);
    if (rows.length > ALL_UP_TO && (first !== this.state.first || last !== this.state.last))
      this.setState({ first, last });
  }

  render({ rows, row, head, height, columns, label }, { first, last }) {
    const isWhole = rows.length <= ALL_UP_TO;
    const [from, to] = isWhole ? [0, rows.length] : [Math.min(first, rows.length), Math.min(last, rows.length)];
    const spacer = (number) =>
      number > 0 &&
      html`<tr class="spacer" aria-hidden="true">
        <td colspan=${columns} style=${{ height: `${number * height}px` }}></td>
      </tr>`;
    return html`<div class="panel scroll" tabindex="0" role="region" aria-label=${label}>
      <table aria-rowcount=${rows.length + 1}>
        <thead>
          ${head}
        </thead>
        <tbody ref=${this.body}>
          ${spacer(from)}${rows.slice(from, to).map((each, at) => row(each, from + at))}${spacer(rows.length - to)}
        </tbody>
      </table>
    </div>`;
  }
}
