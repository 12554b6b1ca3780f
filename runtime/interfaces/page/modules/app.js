/** The page: the head of every view, and the view that the address names. */

import { clock } from "./format.js";
import { Component, html, render } from "./html.js";
import { Keys } from "./keys.js";
import { credentials, setToken } from "./node.js";
import { readRoute } from "./route.js";
import { Search } from "./search.js";
import { store } from "./store.js";
import { Question, say, Toast } from "./actions.js";
import { View } from "./views.js";

const TICK_MS = 1_000;
/** The views that the head names, by their places in the address. */
const VIEWS = {
  overview: "Overview",
  connectors: "Connectors",
  workers: "Workers",
  history: "History",
  letters: "Dead letters",
  logs: "Logs",
  groups: "Kafka groups",
  settings: "Settings",
};

/** The place in the head of a route, and the name of its view. */
function placeOf({ parts }) {
  const [place = "overview", name, what] = parts;
  if (place === "new") return ["connectors", "edit"];
  if (place === "connectors" && name) return ["connectors", what === "edit" ? "edit" : "connector"];
  return Object.hasOwn(VIEWS, place) ? [place, place] : ["overview", "overview"];
}

class App extends Component {
  constructor() {
    super();
    this.state = { route: readRoute() };
    this.draw = () => this.setState({});
  }

  componentDidMount() {
    store.subscribe(this.draw);
    setInterval(() => document.hidden || store.show(), TICK_MS);
    addEventListener("hashchange", () => this.setState({ route: readRoute() }));
    nameDocument();
  }

  componentDidUpdate(_, before) {
    const { route } = this.state;
    if (before.route.parts.join("/") !== route.parts.join("/")) {
      scrollTo(0, 0);
      if (!before.route.parts.includes("new")) say("");
      document.querySelector("main")?.focus({ preventScroll: true });
    }
    nameDocument();
  }

  render(_, { route }) {
    const [place, name] = placeOf(route);
    return html`
      <a class="skip" href="#main">Skip to the content</a>
      <${Head} state=${store.state} place=${place} />
      <main id="main" tabindex="-1">
        ${store.refused ? html`<${SignIn} />` : store.state ? html`<${View} key=${place === "connectors" ? route.parts.join("/") : place} name=${name} state=${store.state} route=${route} />` : html`<p class="sub">Reading the state of the node …</p>`}
      </main>
      <${Toast} /><${Question} /><${Keys} />
    `;
  }
}

/** Name the tab by what its view is headed with. */
function nameDocument() {
  const title = document.querySelector("h1")?.textContent.trim();
  const named = title ? `${title} · fairlead` : "fairlead";
  if (named !== document.title) document.title = named;
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
      ${Object.entries(VIEWS).map(([each, label]) => html`<a href="#/${each === "overview" ? "" : each}" aria-current=${each === place ? "page" : undefined}>${label}</a>`)}
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

/** Show the page in place of what the node has sent with it, once there is more to show. */
function begin() {
  if (!store.state && !store.refused && store.lostAt === null) return;
  stop();
  const root = document.getElementById("page");
  root.replaceChildren();
  render(html`<${App} />`, root);
}

const stop = store.subscribe(begin);
if (document.getElementById("stranger") && !credentials().Authorization) store.refuse(401);
else store.start();
