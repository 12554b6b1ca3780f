/** A connector to create or to change: a form made of what its keys are, the same config as text beside it, checked while one types. */

import { Button, say } from "../actions.js";
import { plural } from "../format.js";
import { Component, html } from "../html.js";
import { ask, connectorPath, get } from "../node.js";
import { Prose, Shape } from "../parts.js";
import { SOME } from "../rights.js";
import { go } from "../route.js";
import { Sample } from "../sample.js";
import { Difference } from "../versions.js";
import { parse, write } from "../config-text.js";

const CLASS = "SparkPipeline";
const CHECK_MS = 400;
const FORBIDDEN = 403;
const HIDDEN = "********";
const TYPES = ["source.type", "sink.type"];
/** The type of a source that is a class of Kafka Connect's: that alone chooses it. */
const OF_CLASS = "connect";
const FIRST = ["Source", "Sink", "Transforms"];
/** What a plugin of Kafka Connect's has beside itself, by what it is: without a type that is Kafka. */
const OTHER_END = {
  source: {
    key: "sink.type",
    label: "Rows go to",
    kafka: "topics of Kafka, as in Kafka Connect",
    plugin: "a sink connector of Kafka Connect's",
  },
  sink: { key: "source.type", label: "Rows come from", kafka: "topics of Kafka, as in Kafka Connect" },
};

export class Edit extends Component {
  constructor(props) {
    super(props);
    const name = props.route.parts[0] === "connectors" ? props.route.parts[1] : "";
    this.state = {
      name,
      isNew: !name,
      config: {},
      stored: {},
      checked: null,
      language: "yaml",
      text: "",
      flaw: "",
      difference: null,
      types: {},
      foreign: {},
    };
  }

  async componentDidMount() {
    const { isNew, name } = this.state;
    this.readTypes();
    this.readClasses();
    if (isNew) {
      const { query } = this.props.route;
      const begin = {
        "connector.class": CLASS,
        "source.type": query.get("from") ?? "files",
        "sink.type": query.get("to") ?? "files",
      };
      this.change(begin);
      return;
    }
    try {
      const stored = await get(connectorPath(name, "config"));
      delete stored.name;
      this.setState({ stored });
      this.change(stored);
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  /** Which types of sources and sinks are installed: they select the keys that only their configs have. */
  async readTypes() {
    try {
      const keys = await get(`connector-plugins/${CLASS}/config?extended=true`);
      const types = Object.fromEntries(TYPES.map((key) => [key, ["files"]]));
      for (const { only_with: selection = "" } of keys) {
        const [key, type] = selection.split("=");
        if (types[key] && type !== OF_CLASS && !types[key].includes(type)) types[key].push(type);
      }
      this.setState({ types });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  /** Which classes there are, and which of them are plugins of Kafka Connect: no delivery is told of these. */
  async readClasses() {
    try {
      const classes = await get("connector-plugins?extended=true");
      const names = [...new Set(classes.map((each) => each.class))];
      const foreign = classes.filter((each) => !each.delivery).map((each) => [each.class, each.type]);
      this.setState({ classes: names, foreign: Object.fromEntries(foreign) });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  componentWillUnmount() {
    clearTimeout(this.timer);
  }

  /** Have another config; it is checked once nothing is typed for a moment. */
  change(config, text) {
    this.setState((before) => ({
      config,
      text: text ?? write(config, before.language),
      flaw: "",
      difference: null,
      checked: before.config["connector.class"] === config["connector.class"] ? before.checked : null,
    }));
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.check(), CHECK_MS);
  }

  put(key, value) {
    const config = { ...this.state.config };
    if (value === "") delete config[key];
    else config[key] = value;
    const isEnd = Object.values(OTHER_END).some((end) => end.key === key);
    if (key === "connector.class" && this.typeOf(value)) leaveOut(config, ["source.", "sink."]);
    else if (isEnd && value === "") leaveOut(config, [key.replace("type", "")]);
    this.change(config);
  }

  /** Whether a class of Kafka Connect's is a source or a sink; it has its short names. None: it is fairlead's. */
  typeOf(name) {
    const isMeant = (full) => [full, full.split(".").pop(), full.split(".").pop().replace(/Connector$/, "")].includes(name);
    return Object.entries(this.state.foreign).find(([full]) => isMeant(full))?.[1];
  }

  type(text) {
    try {
      this.change(parse(text, this.state.language), text);
    } catch (flaw) {
      this.setState({ text, flaw: flaw.message });
    }
  }

  async check() {
    const { config, name } = this.state;
    const kind = config["connector.class"] ?? CLASS;
    const whole = name ? { ...config, name } : config;
    const number = (this.checks = (this.checks ?? 0) + 1);
    try {
      const checked = await ask(
        "PUT",
        `connector-plugins/${encodeURIComponent(kind)}/config/validate?extended=true`,
        whole,
      );
      if (number === this.checks) this.setState({ checked });
    } catch (refusal) {
      const checked = refusal.status === FORBIDDEN ? await this.readKeys(kind) : null;
      if (number === this.checks) this.setState({ flaw: refusal.message, checked });
    }
  }

  /** The keys of a class as if they were checked and nothing found: for whoever may not have a config validated. */
  async readKeys(kind) {
    try {
      const keys = await get(`connector-plugins/${encodeURIComponent(kind)}/config`);
      const value = { value: null, recommended_values: [], errors: [] };
      return { configs: keys.map((definition) => ({ definition, value: { ...value, name: definition.name } })) };
    } catch {
      return null;
    }
  }

  async compare() {
    try {
      this.setState({
        difference: await ask("PUT", connectorPath(this.state.name, "config", "diff"), this.state.config),
      });
    } catch (refusal) {
      say(refusal.message, true);
    }
  }

  async save(event) {
    event.preventDefault();
    const { name, config, isNew } = this.state;
    this.setState({ isBusy: true });
    try {
      if (isNew) await ask("POST", "connectors", { name, config });
      else await ask("PUT", connectorPath(name, "config"), config);
      say(isNew ? `${name} is created; its first rows come as soon as its tasks run.` : `${name} has its new config.`);
      go(["connectors", name]);
    } catch (refusal) {
      say(refusal.message, true);
      this.setState({ isBusy: false });
    }
  }

  render(_, { name, isNew, config, stored, checked, language, text, flaw, difference, types, classes = [], isBusy }) {
    const errors = (checked?.configs ?? []).filter((each) => each.value?.errors.length && each.value.name !== "name");
    const foreign = this.typeOf(config["connector.class"]);
    const isFine = name.trim() && checked && !errors.length && !flaw;
    return html`<div class="crumb">
        <a href="#/connectors">Connectors</a> /
        ${isNew ? "new" : html`<a href="#/connectors/${encodeURIComponent(name)}">${name}</a>`}
      </div>
      <form onSubmit=${(event) => this.save(event)}>
        <div class="head">
          <div>
            <h1>${isNew ? "A new connector" : `Config of ${name}`}</h1>
            <p class="sub" role="status">
              ${flaw ? html`<${Shape} kind="bad" word="wrong" /> ${flaw}` : !checked ? "Being checked …" : errors.length ? html`<${Shape} kind="wait" word="not complete" /> ${plural(errors.length, "key")} to look at: ${errors.map((each) => each.value.name).join(", ")}` : html`<${Shape} kind="ok" word="fine" /> It can be ${isNew ? "created" : "saved"}.`}
            </p>
          </div>
          <div class="acts">
            <a class="button" href=${isNew ? "#/connectors" : `#/connectors/${encodeURIComponent(name)}`}>Cancel</a>
            ${!isNew && html`<button type="button" onClick=${() => this.compare()}>What changes…</button>`}
            <${Button}
              needs="administer"
              connector=${name || SOME}
              kind="first"
              type="submit"
              disabled=${!isFine || isBusy}
              >${isNew ? "Create" : "Save"}<//
            >
          </div>
        </div>
        ${checked?.warnings?.map((each) => html`<p class="note wait">${each}</p>`)}
        ${
          difference &&
          html`<h2>What changes</h2>
            <div class="panel pad"><${Changes} difference=${difference} /></div>`
        }
        <div class="two">
          <div class="form">
            ${
              isNew &&
              html`<div class="field">
                <label for="name">Name</label
                ><input
                  id="name"
                  required
                  value=${name}
                  onInput=${(event) => {
                    this.setState({ name: event.target.value });
                    this.change(config);
                  }}
                />
                ${name in this.props.state.connectors && html`<span class="wrong">A connector has this name already.</span>`}
              </div>`
            }
            ${foreign && html`<${End} end=${OTHER_END[foreign]} config=${config} types=${types} onPut=${(key, value) => this.put(key, value)} />`}
            <${Fields}
              configs=${(checked?.configs ?? []).filter((each) => each.value?.name !== OTHER_END[foreign]?.key)}
              config=${config}
              types=${types}
              classes=${classes}
              onPut=${(key, value) => this.put(key, value)}
            />
          </div>
          <div>
            <h2>
              As text
              <span class="filters"
                >${["yaml", "json"].map((each) => html`<button type="button" class="chip" aria-pressed=${language === each} onClick=${() => this.setState({ language: each, text: write(config, each) })}>${each.toUpperCase()}</button>`)}</span
              >
            </h2>
            <label class="hidden" for="text">The config as text</label>
            <textarea
              id="text"
              class="code"
              spellcheck="false"
              aria-invalid=${flaw ? "true" : undefined}
              value=${text}
              onInput=${(event) => this.type(event.target.value)}
              rows="22"
            ></textarea>
            ${!foreign && html`<${Sample} name=${name} config=${config} isFine=${checked && !errors.length} />`}
          </div>
        </div>
      </form>`;
  }
}

function Changes({ difference }) {
  if (!difference.changes.length) return html`Nothing: the connector has this config.`;
  const side = (of) =>
    Object.fromEntries(difference.changes.filter((each) => each[of] !== null).map((each) => [each.key, each[of]]));
  return html`<${Difference} before=${side("from")} after=${side("to")} />`;
}

function leaveOut(config, prefixes) {
  for (const key of Object.keys(config)) if (prefixes.some((each) => key.startsWith(each))) delete config[key];
}

/** Where a plugin of Kafka Connect's writes to, or reads from: Kafka, or a type of fairlead's with its own keys. */
function End({ end: { key, label, kafka, plugin }, config, types, onPut }) {
  return html`<div class="field">
    <label for="end">${label}</label>
    <select id="end" value=${config[key] ?? ""} onChange=${(event) => onPut(key, event.target.value)}>
      <option value="">${kafka}</option>
      ${(types[key] ?? []).map((each) => html`<option value=${each}>${key}=${each}</option>`)}
      ${plugin && html`<option value=${OF_CLASS}>${plugin}</option>`}
    </select>
  </div>`;
}

/** The keys by their groups: those that are needed, set or wrong are open, the others a click away. */
function Fields({ configs, config, types, classes, onPut }) {
  const groups = new Map();
  for (const each of configs) {
    if (!each.definition || !each.value || each.value.name === "name") continue;
    const { group } = each.definition;
    if (!groups.has(group)) groups.set(group, []);
    groups.get(group).push(each);
  }
  const isPlain = (each) =>
    !(each.value.name in config) &&
    !each.value.errors.length &&
    !each.definition.required &&
    !TYPES.includes(each.value.name);
  const rank = ([group, all]) =>
    FIRST.includes(group) ? FIRST.indexOf(group) : all.some((each) => !isPlain(each)) ? FIRST.length : FIRST.length + 1;
  return [...groups]
    .sort((one, other) => rank(one) - rank(other))
    .map(([group, all]) => {
      const shown = all.filter((each) => !isPlain(each));
      const more = all.filter(isPlain);
      const field = (each) =>
        html`<${Field}
          key=${each.value.name}
          each=${each}
          value=${config[each.value.name] ?? ""}
          options=${types[each.value.name]}
          suggested=${each.value.name === "connector.class" ? classes : each.value.recommended_values}
          onPut=${onPut}
        />`;
      return html`<details open=${shown.length > 0} key=${group}>
        <summary>${group || "Connector"}</summary>
        <div>
          ${shown.map(field)}${
            more.length > 0 &&
            html`<details>
              <summary>${plural(more.length, "more key")}, with their defaults</summary>
              <div>${more.map(field)}</div>
            </details>`
          }
        </div>
      </details>`;
    });
}

function Field({ each: { definition, value: checked }, value, options, suggested, onPut }) {
  const { name } = checked;
  const id = `key-${name}`;
  const isNeeded = definition.required && value === "";
  const wrong = checked.errors.length > 0 && !isNeeded;
  const shared = { id, "aria-invalid": wrong ? "true" : undefined, "aria-describedby": `${id}-help` };
  const put = (event) => onPut(name, event.target.value);
  let input = html`<input
    ...${shared}
    list=${suggested.length ? `${id}-list` : undefined}
    placeholder=${definition.default_value ?? ""}
    value=${value}
    onInput=${put}
  />`;
  if (definition.type === "BOOLEAN")
    input = html`<select ...${shared} value=${value} onChange=${put}>
      <option value="">${definition.default_value ?? ""}</option>
      <option>true</option>
      <option>false</option>
    </select>`;
  else if (definition.type === "PASSWORD")
    input = html`<input
      ...${shared}
      type="password"
      autocomplete="off"
      placeholder=${value === HIDDEN ? "kept as it is" : ""}
      value=${value === HIDDEN ? "" : value}
      onInput=${put}
    />`;
  else if (options)
    input = html`<select ...${shared} value=${value || definition.default_value} onChange=${put}>
      ${options.map((one) => html`<option>${one}</option>`)}
    </select>`;
  else if (/\.(query|schema)$/.test(name))
    input = html`<textarea
      ...${shared}
      class="code"
      rows="4"
      placeholder=${definition.default_value ?? ""}
      value=${value}
      onInput=${put}
    ></textarea>`;
  return html`<div class="field">
    <label for=${id}>${name}${definition.required && html` <span class="soft">needed</span>`}</label>
    ${input}
    ${suggested.length > 0 && html`<datalist id="${id}-list">${suggested.map((one) => html`<option value=${one} />`)}</datalist>`}
    ${wrong && checked.errors.map((one) => html`<span class="wrong">${one}</span>`)}
    <span class="help" id="${id}-help"><${Prose} text=${definition.documentation} /></span>
  </div>`;
}
