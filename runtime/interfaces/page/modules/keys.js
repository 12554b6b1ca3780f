/** The keys of the page, listed under `?`. */

import { Component, createRef, html } from "./html.js";
import { go } from "./route.js";

const PLACES = {
  o: ["Overview", []],
  c: ["Connectors", ["connectors"]],
  w: ["Workers", ["workers"]],
  h: ["History", ["history"]],
  k: ["Kafka groups", ["groups"]],
  l: ["Logs", ["logs"]],
  n: ["New connector", ["new"]],
};

export class Keys extends Component {
  constructor() {
    super();
    this.dialog = createRef();
    this.isGoing = false;
    this.hear = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName))
        return;
      if (event.key === "?") this.dialog.current.showModal();
      else if (this.isGoing && PLACES[event.key]) go(PLACES[event.key][1]);
      this.isGoing = event.key === "g";
    };
  }

  componentDidMount() {
    addEventListener("keydown", this.hear);
  }

  componentWillUnmount() {
    removeEventListener("keydown", this.hear);
  }

  render() {
    return html`<dialog ref=${this.dialog} aria-labelledby="keys">
      <h2 id="keys">Keys</h2>
      <dl class="pairs">
        <dt><kbd>/</kbd></dt>
        <dd>find a connector, task or worker</dd>
        ${Object.entries(PLACES).map(
          ([key, [label]]) =>
            html`<dt><kbd>g</kbd> <kbd>${key}</kbd></dt>
              <dd>${label}</dd>`,
        )}
        <dt><kbd>Esc</kbd></dt>
        <dd>close what is open</dd>
        <dt><kbd>?</kbd></dt>
        <dd>this list</dd>
      </dl>
      <form method="dialog" class="acts"><button>Close</button></form>
    </dialog>`;
  }
}
