/** Workers and their tasks as one canvas: a row for each worker, a cell for each task; what moves is an arrow.
 *
 * Members of other groups and their partitions are drawn the same way, with other words.
 */

import { count, plural } from "./format.js";
import { Component, createRef, html } from "./html.js";

const ROW = 32;
const CELL_HEIGHT = 20;
const LEFT = 72;
const LETTER_WIDTH = 6.5;
const WIDEST = 26;
const LETTERS = "kfwpmu";
const WORDS = { k: "running", f: "failed", w: "waiting", p: "paused", m: "moving", u: "unassigned" };

/** The tasks of each worker, in the order of connectors; those that no worker runs are in the last row. */
export function placed(state, moving = new Set()) {
  const rows = state.workers.map((each) => ({ name: each.name, order: each.order, tasks: [] }));
  const nowhere = { name: "nobody", order: "", tasks: [] };
  for (const name of Object.keys(state.connectors).sort()) {
    const row = state.connectors[name];
    for (let number = 0; number < row.cells.length; number += 1) {
      const task = `${name}-${number}`;
      const place = rows[row.on[number]] ?? nowhere;
      place.tasks.push({ task, connector: name, letter: moving.has(task) ? "m" : row.cells[number] });
    }
  }
  return nowhere.tasks.length ? [...rows, nowhere] : rows;
}

export class TaskMap extends Component {
  constructor() {
    super();
    this.canvas = createRef();
    this.state = { under: "" };
  }

  componentDidMount() {
    this.draw();
    this.resize = () => this.draw();
    addEventListener("resize", this.resize);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.scheme.addEventListener("change", this.resize);
  }

  componentDidUpdate() {
    this.draw();
  }

  componentWillUnmount() {
    removeEventListener("resize", this.resize);
    this.scheme.removeEventListener("change", this.resize);
  }

  /** Where the cells begin: behind the names. */
  get left() {
    return this.props.left ?? LEFT;
  }

  /** The width of a cell, and how many there are in a line. */
  grid() {
    const width = this.canvas.current.clientWidth - this.left;
    const most = Math.max(1, ...this.props.rows.map((each) => each.tasks.length));
    return Math.min(WIDEST, Math.max(2, width / most));
  }

  draw() {
    const canvas = this.canvas.current;
    const { rows } = this.props;
    const [width, height, scale] = [canvas.clientWidth, rows.length * ROW + 8, devicePixelRatio || 1];
    if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const styles = getComputedStyle(canvas);
    const colours = Object.fromEntries(
      ["ok", "bad", "wait", "off", "move", "soft"].map((each) => [each, resolve(styles, each)]),
    );
    const step = this.grid();
    const paths = Object.fromEntries([...LETTERS].map((each) => [each, new Path2D()]));
    pen.font = "12.5px Inter, system-ui, sans-serif";
    pen.textBaseline = "middle";
    pen.fillStyle = colours.soft;
    rows.forEach((row, line) => {
      const y = 8 + line * ROW;
      pen.fillText(shorten(row.name, this.left), 2, y + CELL_HEIGHT / 2, this.left - 8);
      row.tasks.forEach((each, at) =>
        cell(paths[each.letter], each.letter, this.left + at * step, y, Math.max(1.5, step - (step > 5 ? 2.4 : 0.6))),
      );
    });
    for (const [letter, colour] of [
      ["k", "ok"],
      ["f", "bad"],
      ["m", "move"],
    ]) {
      pen.fillStyle = colours[colour];
      pen.fill(paths[letter]);
    }
    pen.lineWidth = 1.6;
    for (const [letter, colour] of [
      ["w", "wait"],
      ["u", "wait"],
      ["p", "off"],
    ]) {
      pen.strokeStyle = colours[colour];
      pen.stroke(paths[letter]);
    }
  }

  find(event) {
    const box = this.canvas.current.getBoundingClientRect();
    const row = this.props.rows[Math.floor((event.clientY - box.top - 8) / ROW)];
    return row?.tasks[Math.floor((event.clientX - box.left - this.left) / this.grid())];
  }

  /** `words` say what each letter means, `label` what the rows are. */
  render({ rows, onChoose, words: meanings = WORDS, label }, { under }) {
    const counts = {};
    for (const row of rows) for (const each of row.tasks) counts[each.letter] = (counts[each.letter] ?? 0) + 1;
    const words = Object.entries(counts)
      .map(([letter, number]) => `${count(number)} ${meanings[letter]}`)
      .join(", ");
    const look = (event) => {
      const task = this.find(event);
      const text = task ? `${task.task}: ${meanings[task.letter]}` : "";
      if (text !== under) this.setState({ under: text });
    };
    return html`<canvas
      ref=${this.canvas}
      role="img"
      aria-label="${label ?? `${plural(rows.length, "worker")}; tasks`}: ${words || "none"}"
      title=${under}
      onMouseMove=${look}
      onClick=${(event) => {
        const task = this.find(event);
        if (task) onChoose?.(task);
      }}
    ></canvas>`;
  }
}

function cell(path, letter, x, y, width) {
  if (letter === "m") {
    path.moveTo(x, y);
    path.lineTo(x + width * 0.6, y);
    path.lineTo(x + width, y + CELL_HEIGHT / 2);
    path.lineTo(x + width * 0.6, y + CELL_HEIGHT);
    path.lineTo(x, y + CELL_HEIGHT);
    path.closePath();
  } else if (letter === "k") path.roundRect(x, y, width, CELL_HEIGHT, Math.min(2, width / 3));
  else if (letter === "f") path.rect(x, y, width, CELL_HEIGHT);
  else path.rect(x + 0.8, y + 0.8, Math.max(0.5, width - 1.6), CELL_HEIGHT - 1.6);
}

function shorten(name, width) {
  const most = Math.floor(width / LETTER_WIDTH);
  return name.length > most ? `${name.slice(0, most - 1)}…` : name;
}

const known = new Map();

/** A colour of the sheet, as a canvas needs it. */
function resolve(styles, name) {
  const key = `${styles.colorScheme} ${matchMedia("(prefers-color-scheme: dark)").matches} ${name}`;
  if (!known.has(key)) {
    const probe = document.createElement("i");
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    known.set(key, getComputedStyle(probe).color);
    probe.remove();
  }
  return known.get(key);
}
