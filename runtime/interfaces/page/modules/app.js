/** The page: the head of every view, and the view that the address names. */

import { clock } from "./format.js";
import { Component, html, render } from "./html.js";
import { Keys } from "./keys.js";
import { credentials, setToken } from "./node.js";
import { readRoute } from "./route.js";
import { Search } from "./search.js";
import { store } from "./store.js";
import { Question, say, Toast } from "./actions.js";
import { Connector } from "./views/connector.js";
import { Connectors } from "./views/connectors.js";
import { Edit } from "./views/edit.js";
import { Groups } from "./views/groups.js";
import { History } from "./views/history.js";
import { Letters } from "./views/letters.js";
import { Logs } from "./views/logs.js";
import { Overview } from "./views/overview.js";
import { Settings } from "./views/settings.js";
import { Workers } from "./views/workers.js";

const TICK_MS = 1_000;
const VIEWS = [
  ["overview", "Overview", Overview],
  ["connectors", "Connectors", Connectors],
  ["workers", "Workers", Workers],
  ["history", "History", History],
  ["letters", "Dead letters", Letters],
  ["logs", "Logs", Logs],
  ["groups", "Kafka groups", Groups],
  ["settings", "Settings", Settings],
];

/** The view of a route, and the name of its place in the head. */
function viewOf({ parts }) {
  const [place = "overview", name, what] = parts;
  if (place === "new") return ["connectors", Edit];
  if (place === "connectors" && name) return ["connectors", what === "edit" ? Edit : Connector];
  const [, , view] = VIEWS.find(([each]) => each === place) ?? VIEWS[0];
  return [place, view];
}

class App extends Component {
  constructor() {
    super();
    this.state = { route: readRoute() };
    this.draw = () => this.setState({});
  }

  componentDidMount() {
    store.subscribe(this.draw);
    setInterval(() => document.hidden || this.draw(), TICK_MS);
    addEventListener("hashchange", () => this.setState({ route: readRoute() }));
  }

  componentDidUpdate(_, before) {
    const { route } = this.state;
    if (before.route.parts.join("/") !== route.parts.join("/")) {
      scrollTo(0, 0);
      if (!before.route.parts.includes("new")) say("");
      document.querySelector("main")?.focus({ preventScroll: true });
    }
    const title = document.querySelector("h1")?.textContent.trim();
    document.title = title ? `${title} · fairlead` : "fairlead";
  }

  render(_, { route }) {
    const [place, View] = viewOf(route);
    return html`
      <a class="skip" href="#main">Skip to the content</a>
      <${Head} state=${store.state} place=${place} />
      <main id="main" tabindex="-1">
        ${store.refused ? html`<${SignIn} />` : store.state ? html`<${View} key=${place === "connectors" ? route.parts.join("/") : place} state=${store.state} route=${route} />` : html`<p class="sub">Reading the state of the node …</p>`}
      </main>
      <${Toast} /><${Question} /><${Keys} />
    `;
  }
}

function Head({ state, place }) {
  return html`<header class="top">
    <a class="mark" href="#/"
      ><svg
        viewBox="0 0 20 20"
        fill="none"
        stroke="currentColor"
        stroke-width="2"
        stroke-linecap="round"
        aria-hidden="true"
      >
        <path d="M2 13c4 0 4-6 8-6s4 6 8 6" />
        <circle cx="10" cy="7" r="2.2" fill="currentColor" stroke="none" /></svg
      >fairlead</a
    >
    ${state && html`<span class="group"><b>${state.group}</b> · epoch ${state.epoch}</span>`}
    <nav aria-label="Views">
      ${VIEWS.map(([each, label]) => html`<a href="#/${each === "overview" ? "" : each}" aria-current=${each === place ? "page" : undefined}>${label}</a>`)}
    </nav>
    <span class="grow"></span>
    <${Search} state=${state} />
    <${Live} />
  </header>`;
}

/** Whether what is shown is of now. */
function Live() {
  if (store.lostAt === null && store.follows === null)
    return html`<span class="live soft" role="status">connecting</span>`;
  if (store.lostAt === null) return html`<span class="live" role="status"><i></i>live</span>`;
  return html`<span class="live lost" role="status"><i></i>no answer since ${clock(store.lostAt)}; tried again</span>`;
}

/** The node wants to know who asks, and the browser has not asked by itself. */
function SignIn() {
  const enter = (event) => {
    event.preventDefault();
    setToken(new FormData(event.target).get("token").trim());
    location.reload();
  };
  return html`<h1>${store.refused === 403 ? "You lack the right to look at this node" : "Who are you?"}</h1>
    ${store.why && html`<p class="note">${store.why}</p>`}
    <p class="sub">
      This node asks its callers for a login. Paste a token of <code>fairlead auth token add</code>, or of your identity
      provider; it is forgotten with this tab.
    </p>
    <form class="acts" onSubmit=${enter}>
      <label class="hidden" for="token">Token</label>
      <input id="token" name="token" type="password" autocomplete="off" required />
      <button class="first">Sign in</button>
    </form>`;
}

const root = document.getElementById("page");
const isStranger = document.getElementById("stranger") !== null && !credentials().Authorization;
root.replaceChildren();
render(html`<${App} />`, root);
if (isStranger) store.refuse(401);
else store.start();
