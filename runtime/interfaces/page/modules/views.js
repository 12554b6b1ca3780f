/** The views: the overview comes with the page, the others once it is painted, or when somebody goes there. */

import { Component, html } from "./html.js";
import { Overview } from "./views/overview.js";

const OTHERS = ["connector", "connectors", "edit", "groups", "history", "letters", "logs", "settings", "workers"];
const shown = { overview: Overview };

/** A view by its name, which is that of its module; its component has the same with a capital. */
export class View extends Component {
  componentDidMount() {
    afterPaint(() => Promise.allSettled(OTHERS.map(load)));
  }

  render({ name, ...rest }) {
    if (shown[name]) return html`<${shown[name]} ...${rest} />`;
    load(name)
      .catch(() => (shown[name] = Missing))
      .finally(() => this.setState({}));
    return html`<p class="sub">Loading the view …</p>`;
  }
}

async function load(name) {
  const module = await import(`./views/${name}.js`);
  shown[name] = module[name[0].toUpperCase() + name.slice(1)];
}

function Missing() {
  return html`<h1>This view did not come</h1>
    <p class="sub">The node went away, or is of another version now. What you saw is kept; load the page again.</p>
    <p class="acts"><button type="button" class="first" onClick=${() => location.reload()}>Load again</button></p>`;
}

/** Do what nobody waits for, once the next frame is painted. */
function afterPaint(work) {
  requestAnimationFrame(() => setTimeout(work));
}
