/** The last hour of a connector as a plot: rows per second and how far behind, with marks where something happened. */

import { clock, count, span } from "./format.js";
import { Component, createRef, html } from "./html.js";

const HEIGHT = 170;
const LEAST_TOP = 5;
let library = null;

/** uPlot, loaded with the first plot: it is larger than the rest of the page. */
function load() {
  library ??= new Promise((done, fail) => {
    const style = Object.assign(document.createElement("link"), {
      rel: "stylesheet",
      href: new URL("../vendor/uPlot.min.css", import.meta.url).href,
    });
    const script = Object.assign(document.createElement("script"), {
      src: new URL("../vendor/uPlot.iife.min.js", import.meta.url).href,
      onload: () => done(self.uPlot),
      onerror: fail,
    });
    document.head.append(style, script);
  });
  return library;
}

/** Whether two points are known: one makes no line. */
function isDrawn(history) {
  return (history?.rows_per_second ?? []).filter((each) => each !== null).length > 1;
}

function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** A range that is never so small that its marks would be fractions. */
function fromZero(_, __, top) {
  return [0, Math.max(LEAST_TOP, top * 1.1)];
}

function timeOf(second, step) {
  const seconds = step < 60 ? { second: "2-digit" } : {};
  return new Date(second * 1000).toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
    hour12: false,
    ...seconds,
  });
}

export class HourPlot extends Component {
  constructor() {
    super();
    this.place = createRef();
  }

  shouldComponentUpdate(next) {
    return next.history !== this.props.history;
  }

  componentDidMount() {
    this.draw();
    this.resize = () => this.chart?.setSize({ width: this.place.current.clientWidth, height: HEIGHT });
    addEventListener("resize", this.resize);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.restyle = () => {
      this.chart?.destroy();
      this.chart = null;
      this.draw();
    };
    this.scheme.addEventListener("change", this.restyle);
  }

  componentDidUpdate() {
    this.draw();
  }

  componentWillUnmount() {
    removeEventListener("resize", this.resize);
    this.scheme.removeEventListener("change", this.restyle);
    this.chart?.destroy();
  }

  async draw() {
    const { history } = this.props;
    if (!isDrawn(history)) return;
    const Plot = await load();
    if (!this.place.current) return;
    const data = [
      history.time_ms.map((each) => each / 1000),
      history.rows_per_second,
      history.behind_ms.map((each) => each && each / 1000),
    ];
    this.marks = history.marks ?? [];
    if (this.chart) this.chart.setData(data);
    else this.chart = new Plot(this.options(), data, this.place.current);
  }

  options() {
    const [soft, line, accent, wait, bad] = ["soft", "line", "accent", "wait", "bad"].map(colour);
    const axis = {
      stroke: soft,
      grid: { stroke: line, width: 1 },
      ticks: { show: false },
      font: "11px Inter, system-ui, sans-serif",
    };
    const marks = (chart) => {
      const { ctx, bbox } = chart;
      ctx.save();
      ctx.strokeStyle = bad;
      ctx.setLineDash([4, 4]);
      for (const mark of this.marks) {
        const x = chart.valToPos(mark.time_ms / 1000, "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width) continue;
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
      }
      ctx.restore();
    };
    return {
      width: this.place.current.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false },
      scales: { y: { range: fromZero }, behind: { range: fromZero } },
      axes: [
        { ...axis, size: 26, values: (_, values, __, ___, step) => values.map((each) => timeOf(each, step)) },
        { ...axis, size: 56, values: (_, values) => values.map(count) },
        {
          ...axis,
          side: 1,
          scale: "behind",
          size: 50,
          grid: { show: false },
          values: (_, values) => values.map((each) => span(each * 1000)),
        },
      ],
      series: [
        {},
        { stroke: accent, width: 1.4, fill: `color-mix(in srgb, ${accent} 12%, transparent)` },
        { scale: "behind", stroke: wait, width: 1.2, dash: [5, 3] },
      ],
      hooks: { draw: [marks] },
    };
  }

  render({ history }) {
    const known = isDrawn(history);
    const marks = history?.marks ?? [];
    return html`<div class="panel plot">
      ${!known && html`<p class="soft">No figures yet: the first come within a minute.</p>`}
      <div
        class=${known ? "canvas" : ""}
        ref=${this.place}
        role="img"
        aria-label=${known ? `rows per second, from 0 to ${count(Math.max(0, ...history.rows_per_second))}` : "no figures yet"}
      ></div>
      <div class="legend">
        <span><i class="cell m"></i>rows per second</span><span>dashed: how far behind</span>
        ${history?.began_ms && html`<span>kept since ${clock(history.began_ms)}</span>`}
        ${marks.slice(-3).map((each) => html`<span class="mark-text" title=${each.text}>${clock(each.time_ms)} ${each.text}</span>`)}
      </div>
    </div>`;
  }
}
